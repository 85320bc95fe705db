import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.stream.Collectors;

import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiBits;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.SegmentReader;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.StringHelper;

/**
 * Writes where the words of one field stand in their documents, as 32-bit little-endian numbers: for each term, for
 * each of its documents that are not deleted, in the order of SnapshotExporter's postings.
 *
 * Arguments, one a line: index folder, file to write, field. Returns "no positions" where the field has none, else the
 * ids of the segments that were read, as SnapshotExporter tells them.
 */
public final class PositionExporter {
  public static String run(String lines) throws IOException {
    String[] a = lines.split("\n", -1);
    try (FSDirectory directory = FSDirectory.open(Path.of(a[0])); DirectoryReader reader = DirectoryReader.open(directory);
        FileChannel file = FileChannel.open(Path.of(a[1]), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
      for (LeafReaderContext leaf : reader.leaves()) leaf.reader().checkIntegrity();
      Terms terms = MultiTerms.getTerms(reader, a[2]);
      if (terms != null && !terms.hasPositions()) return "no positions";
      if (terms != null) export(terms.iterator(), MultiBits.getLiveDocs(reader), file);
      return reader.leaves().stream().map(PositionExporter::idOf).collect(Collectors.joining(" "));
    }
  }

  private static String idOf(LeafReaderContext leaf) {
    byte[] id = leaf.reader() instanceof SegmentReader segment ? segment.getSegmentInfo().getId() : null;
    return id == null ? "unknown" : StringHelper.idToString(id);
  }

  private static void export(TermsEnum walk, Bits live, FileChannel file) throws IOException {
    ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 18).order(ByteOrder.LITTLE_ENDIAN);
    PostingsEnum postings = null;
    while (walk.next() != null) {
      postings = walk.postings(postings, PostingsEnum.POSITIONS);
      for (int doc = postings.nextDoc(); doc != DocIdSetIterator.NO_MORE_DOCS; doc = postings.nextDoc()) {
        if (live != null && !live.get(doc)) continue;
        for (int left = postings.freq(); left > 0; left--) {
          if (!buffer.hasRemaining()) flush(buffer, file);
          buffer.putInt(postings.nextPosition());
        }
      }
    }
    flush(buffer, file);
  }

  private static void flush(ByteBuffer buffer, FileChannel file) throws IOException {
    buffer.flip();
    while (buffer.hasRemaining()) file.write(buffer);
    buffer.clear();
  }
}
