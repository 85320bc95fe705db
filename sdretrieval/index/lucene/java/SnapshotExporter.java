import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import org.apache.lucene.document.Document;
import org.apache.lucene.index.BinaryDocValues;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexReader;
import org.apache.lucene.index.LeafReader;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.MultiBits;
import org.apache.lucene.index.MultiDocValues;
import org.apache.lucene.index.MultiReader;
import org.apache.lucene.index.MultiTerms;
import org.apache.lucene.index.PostingsEnum;
import org.apache.lucene.index.SegmentReader;
import org.apache.lucene.index.StoredFields;
import org.apache.lucene.index.Terms;
import org.apache.lucene.index.TermsEnum;
import org.apache.lucene.search.DocIdSetIterator;
import org.apache.lucene.store.FSDirectory;
import org.apache.lucene.util.Bits;
import org.apache.lucene.util.BytesRef;
import org.apache.lucene.util.StringHelper;

/**
 * Writes the term statistics of one field of a Lucene index to little-endian binary files, in bulk inside the JVM:
 * one call over the Python bridge per posting would take minutes on a real collection.
 *
 * Deleted documents are left out and the rest renumbered; terms that only deleted documents had are left out too.
 * Lucene's checksums of all files that are read are checked first. Segments that an earlier snapshot has are left out,
 * where the first ones are the same and hold at least half of the documents.
 * The shipped class is compiled from this file by `make java` and runs on Lucene 9 and 10.
 *
 * Arguments, one a line: index folder, output folder, field, time field, date field (may be empty), segments of an
 * earlier snapshot (ids between blanks, may be empty).
 */
public final class SnapshotExporter {
  /** Times are indexed as the term "1" + 19 digits of (milliseconds since 1970 + 10^18). */
  private static final long TIME_OFFSET = 1_000_000_000_000_000_000L;
  private static final long UNDATED = Long.MIN_VALUE;
  private static final String UNKNOWN = "unknown";

  /**
   * Returns one "name value" a line: the seconds that opening the index, its postings and everything else took, the
   * segments_N that was read, its segments, and how many documents of the earlier snapshot stay.
   */
  public static String run(String lines) throws IOException {
    String[] a = lines.split("\n", -1);
    return export(Path.of(a[0]), Path.of(a[1]), a[2], a[3], a[4], a[5].split(" "));
  }

  private static String export(Path index, Path out, String field, String timeField, String dateField, String[] known)
      throws IOException {
    long began = System.nanoTime();
    try (FSDirectory directory = FSDirectory.open(index); DirectoryReader all = DirectoryReader.open(directory)) {
      List<LeafReaderContext> leaves = all.leaves();
      String[] ids = leaves.stream().map(SnapshotExporter::idOf).toArray(String[]::new);
      int same = 0;
      int kept = 0;
      while (same < Math.min(ids.length, known.length) && ids[same].equals(known[same]) && !known[same].equals(UNKNOWN)) {
        kept += leaves.get(same++).reader().numDocs();
      }
      if (2L * kept < all.numDocs()) same = kept = 0;
      LeafReader[] read = leaves.stream().skip(same).map(LeafReaderContext::reader).toArray(LeafReader[]::new);
      for (LeafReader leaf : read) leaf.checkIntegrity();
      IndexReader reader = same == 0 ? all : new MultiReader(read, false);
      int[] renumbered = renumber(reader);
      int documents = reader.numDocs();
      long[] lengths = new long[documents];
      long opened = System.nanoTime();
      exportPostings(reader, field, out, renumbered, lengths);
      long walked = System.nanoTime();
      try (Output file = new Output(out, "doc_lengths")) {
        for (long length : lengths) file.putLong(length);
      }
      exportDocids(reader, out, renumbered);
      exportTimes(reader, timeField, out, renumbered, documents);
      if (!dateField.isEmpty()) exportDates(reader, dateField, out, renumbered);
      return "opening " + (opened - began) / 1e9 + "\npostings " + (walked - opened) / 1e9
          + "\nrest " + (System.nanoTime() - walked) / 1e9 + "\ncommit " + all.getIndexCommit().getSegmentsFileName()
          + "\nsegments " + String.join(" ", ids) + "\nkept " + kept;
    }
  }

  /** What tells a segment, in a state of its deletes, from all others. */
  private static String idOf(LeafReaderContext leaf) {
    if (!(leaf.reader() instanceof SegmentReader segment)) return UNKNOWN;
    byte[] id = segment.getSegmentInfo().getId();
    return id == null ? UNKNOWN : StringHelper.idToString(id);
  }

  /** Lucene's number of a document to ours; -1 for deleted ones. */
  private static int[] renumber(IndexReader reader) {
    Bits live = MultiBits.getLiveDocs(reader);
    int[] renumbered = new int[reader.maxDoc()];
    int next = 0;
    for (int doc = 0; doc < renumbered.length; doc++) {
      renumbered[doc] = live == null || live.get(doc) ? next++ : -1;
    }
    return renumbered;
  }

  private static void exportPostings(IndexReader reader, String field, Path out, int[] renumbered, long[] lengths)
      throws IOException {
    Terms terms = MultiTerms.getTerms(reader, field);
    try (Output text = new Output(out, "term_text"); Output textEnd = new Output(out, "term_text_ptr");
        Output ptr = new Output(out, "term_ptr"); Output docs = new Output(out, "term_docs");
        Output counts = new Output(out, "term_counts"); Output cf = new Output(out, "cf")) {
      long postings = 0;
      long bytes = 0;
      ptr.putLong(0);
      textEnd.putLong(0);
      if (terms == null) return;
      Block block = new Block(renumbered, lengths, terms.hasFreqs(), docs, counts);
      TermsEnum walk = terms.iterator();
      PostingsEnum reuse = null;
      for (BytesRef term = walk.next(); term != null; term = walk.next()) {
        reuse = walk.postings(reuse, PostingsEnum.FREQS);
        long total = 0;
        for (boolean more = true; more; ) {
          more = block.read(reuse);
          postings += block.filled;
          total += block.total;
          block.flush();
        }
        if (total == 0) continue;
        text.putBytes(term.bytes, term.offset, term.length);
        bytes += term.length;
        textEnd.putLong(bytes);
        ptr.putLong(postings);
        cf.putLong(total);
      }
    }
  }

  /**
   * Postings on their way out, some thousands at a time: a call per posting would cost more than reading it. The loop
   * over them is a small method of its own, called often, because that is what a JVM that has just started compiles
   * soonest: inside the loop over terms it ran half as fast.
   */
  private static final class Block {
    private static final int SIZE = 1 << 12;
    private final int[] renumbered;
    private final long[] lengths;
    private final boolean hasFreqs;
    private final Output docs;
    private final Output counts;
    private final int[] someDocs = new int[SIZE];
    private final int[] someCounts = new int[SIZE];
    int filled;
    long total;

    Block(int[] renumbered, long[] lengths, boolean hasFreqs, Output docs, Output counts) {
      this.renumbered = renumbered;
      this.lengths = lengths;
      this.hasFreqs = hasFreqs;
      this.docs = docs;
      this.counts = counts;
    }

    /** Take up to a block of a term's next postings; whether there may be more. */
    boolean read(PostingsEnum postings) throws IOException {
      int n = 0;
      long sum = 0;
      int doc = 0;
      while (n < SIZE && (doc = postings.nextDoc()) != DocIdSetIterator.NO_MORE_DOCS) {
        int ours = renumbered[doc];
        if (ours < 0) continue;
        int count = hasFreqs ? postings.freq() : 1;
        someDocs[n] = ours;
        someCounts[n++] = count;
        lengths[ours] += count;
        sum += count;
      }
      filled = n;
      total = sum;
      return doc != DocIdSetIterator.NO_MORE_DOCS;
    }

    void flush() throws IOException {
      docs.putInts(someDocs, filled);
      counts.putInts(someCounts, filled);
    }
  }

  private static void exportDocids(IndexReader reader, Path out, int[] renumbered) throws IOException {
    BinaryDocValues values = MultiDocValues.getBinaryValues(reader, "id");
    StoredFields stored = values == null ? reader.storedFields() : null;
    try (Output text = new Output(out, "docid_text"); Output end = new Output(out, "docid_text_ptr")) {
      long bytes = 0;
      end.putLong(0);
      for (int doc = 0; doc < renumbered.length; doc++) {
        if (renumbered[doc] < 0) continue;
        BytesRef id;
        if (values != null) {
          if (!values.advanceExact(doc)) throw new IOException("document " + doc + " has no id");
          id = values.binaryValue();
        } else {
          String name = stored.document(doc, Set.of("id")).get("id");
          if (name == null) throw new IOException("document " + doc + " has no stored field 'id'");
          id = new BytesRef(name);
        }
        text.putBytes(id.bytes, id.offset, id.length);
        bytes += id.length;
        end.putLong(bytes);
      }
    }
  }

  private static void exportTimes(IndexReader reader, String field, Path out, int[] renumbered, int documents)
      throws IOException {
    long[] times = new long[documents];
    Arrays.fill(times, UNDATED);
    Terms terms = MultiTerms.getTerms(reader, field);
    if (terms != null) {
      TermsEnum walk = terms.iterator();
      PostingsEnum reuse = null;
      for (BytesRef term = walk.next(); term != null; term = walk.next()) {
        long time = Long.parseLong(term.utf8ToString().substring(1)) - TIME_OFFSET;
        reuse = walk.postings(reuse, PostingsEnum.NONE);
        for (int doc = reuse.nextDoc(); doc != DocIdSetIterator.NO_MORE_DOCS; doc = reuse.nextDoc()) {
          if (renumbered[doc] >= 0) times[renumbered[doc]] = time;
        }
      }
    }
    try (Output file = new Output(out, "times")) {
      for (long time : times) file.putLong(time);
    }
  }

  /** The date as text, for Python to parse: a stored field of that name, else a member of the stored raw JSON. */
  private static void exportDates(IndexReader reader, String field, Path out, int[] renumbered) throws IOException {
    JsonFactory json = new JsonFactory();
    StoredFields stored = reader.storedFields();
    Set<String> wanted = Set.of(field, "raw");
    try (Output text = new Output(out, "date_text"); Output end = new Output(out, "date_text_ptr")) {
      long bytes = 0;
      end.putLong(0);
      for (int doc = 0; doc < renumbered.length; doc++) {
        if (renumbered[doc] < 0) continue;
        Document document = stored.document(doc, wanted);
        String value = document.get(field);
        String raw = value == null ? document.get("raw") : null;
        if (raw != null && raw.startsWith("{")) {
          value = member(json, raw, field);
        }
        byte[] utf8 = value == null ? new byte[0] : value.getBytes(StandardCharsets.UTF_8);
        text.putBytes(utf8, 0, utf8.length);
        bytes += utf8.length;
        end.putLong(bytes);
      }
    }
  }

  /** The text of one member of a JSON object, without building the object; null where there is none. */
  private static String member(JsonFactory json, String raw, String field) {
    try (JsonParser parser = json.createParser(raw)) {
      parser.nextToken();
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        boolean wanted = field.equals(parser.getCurrentName());
        JsonToken value = parser.nextToken();
        if (wanted) return value.isScalarValue() && value != JsonToken.VALUE_NULL ? parser.getText() : null;
        parser.skipChildren();
      }
    } catch (IOException notJson) {
      return null;
    }
    return null;
  }

  /** A little-endian binary file, written through one buffer. */
  private static final class Output implements AutoCloseable {
    private final FileChannel channel;
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 18).order(ByteOrder.LITTLE_ENDIAN);

    Output(Path folder, String name) throws IOException {
      Path file = folder.resolve(name + ".bin");
      Files.deleteIfExists(file);
      channel = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    }

    void putInts(int[] values, int length) throws IOException {
      if (buffer.remaining() < 4 * length) flush();
      buffer.asIntBuffer().put(values, 0, length);
      buffer.position(buffer.position() + 4 * length);
    }

    void putLong(long value) throws IOException {
      if (buffer.remaining() < 8) flush();
      buffer.putLong(value);
    }

    void putBytes(byte[] bytes, int offset, int length) throws IOException {
      if (buffer.remaining() < length) flush();
      if (length > buffer.capacity()) {
        ByteBuffer whole = ByteBuffer.wrap(bytes, offset, length);
        while (whole.hasRemaining()) channel.write(whole);
      } else {
        buffer.put(bytes, offset, length);
      }
    }

    private void flush() throws IOException {
      buffer.flip();
      while (buffer.hasRemaining()) channel.write(buffer);
      buffer.clear();
    }

    @Override
    public void close() throws IOException {
      flush();
      channel.close();
    }
  }
}
