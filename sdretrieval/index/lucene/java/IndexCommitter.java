import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.SegmentInfos;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.index.TieredMergePolicy;
import org.apache.lucene.store.FSDirectory;

/**
 * One commit of a Lucene index: documents deleted by id, a finished index added, our notes in the commit's user data.
 * Lucene writes new files, syncs them, and only then switches to them; whoever reads keeps the commit that was opened.
 * A class of our own, because the Python bridge cannot choose between Lucene's addIndexes of directories and of readers.
 *
 * Arguments, one a line: index folder; "create" (the commit replaces all that is there) or "append"; folder of the
 * finished index to add (may be empty); file of ids to delete, one a line (may be empty); "expunge" to rewrite segments
 * with deleted documents, so that Lucene's own statistics do not count them (may be empty);
 * the notes (may be empty: none, or those that are there).
 */
public final class IndexCommitter {
  public static String run(String lines) throws IOException {
    String[] a = lines.split("\n", -1);
    try (FSDirectory directory = FSDirectory.open(Path.of(a[0]))) {
      boolean append = a[1].equals("append");
      // As a commit of an index that this Lucene cannot read, CREATE would start its numbers anew: say so instead.
      if (SegmentInfos.getLastCommitGeneration(directory) >= 0) SegmentInfos.readLatestCommit(directory);
      commit(directory, append, a[2], a[3], !a[4].isEmpty(), a[5]);
    }
    return "";
  }

  private static void commit(FSDirectory directory, boolean append, String added, String ids, boolean expunge,
      String notes) throws IOException {
    TieredMergePolicy merging = new TieredMergePolicy();
    merging.setForceMergeDeletesPctAllowed(0);
    IndexWriterConfig config = new IndexWriterConfig().setMergePolicy(merging).setUseCompoundFile(false)
        .setOpenMode(append ? IndexWriterConfig.OpenMode.APPEND : IndexWriterConfig.OpenMode.CREATE)
        .setMergeScheduler(new SerialMergeScheduler())  // merges that are due are part of the commit
        .setCommitOnClose(false);
    try (IndexWriter writer = new IndexWriter(directory, config)) {
      if (!ids.isEmpty()) {
        for (String id : Files.readAllLines(Path.of(ids))) writer.deleteDocuments(new Term("id", id));
      }
      if (!added.isEmpty()) {
        try (FSDirectory source = FSDirectory.open(Path.of(added))) {
          writer.addIndexes(source);
        }
      }
      if (expunge) expunge(writer);
      if (!notes.isEmpty()) writer.setLiveCommitData(Map.of("sdretrieval", notes).entrySet());
      writer.commit();
    }
  }

  /** The method returns nothing in Lucene 9 and something in Lucene 10: compiled for one, it is not found in the other. */
  private static void expunge(IndexWriter writer) throws IOException {
    try {
      MethodHandles.publicLookup().unreflect(IndexWriter.class.getMethod("forceMergeDeletes")).invoke(writer);
    } catch (IOException | RuntimeException | Error thrown) {
      throw thrown;
    } catch (Throwable thrown) {
      throw new IOException(thrown);
    }
  }
}
