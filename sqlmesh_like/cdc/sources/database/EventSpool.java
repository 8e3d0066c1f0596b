/*
 * A process that runs Debezium's engine and spools its change events. Owns the spool's files while it runs; Python
 * (`engine.py`) starts it, has it compiled in memory by Janino, and tells it which events are in tables.
 *
 * The spool's folder: `log/N.gz` are complete segments, a line for each event: its value, a tab, its key, as Connect's
 * JsonConverter writes them, where instead of the fields of the value's schema, which are longer than most rows, stands
 * `spool:HASH`; they are in `schemas/HASH.json`, once for all events. `offsets/N` is the position in the database's log after segment N (its partition, its
 * offset, and whether that is within a transaction, a line each): the engine continues after the newest segment, so
 * that no event is in two segments, wherever this process was killed. `staging/` has segments that may not be read yet:
 * the one that is being written, and those of a snapshot that is not complete, which begins anew after a kill.
 *
 * Janino knows no lambdas and no inference of generic types, hence raw types.
 */
import com.github.shyiko.mysql.binlog.BinaryLogClient;
import com.github.shyiko.mysql.binlog.event.Event;
import com.github.shyiko.mysql.binlog.event.EventData;
import com.github.shyiko.mysql.binlog.event.EventType;
import com.github.shyiko.mysql.binlog.event.QueryEventData;
import com.github.shyiko.mysql.binlog.event.TableMapEventData;
import com.github.shyiko.mysql.binlog.event.TransactionPayloadEventData;
import com.github.shyiko.mysql.binlog.event.deserialization.EventDeserializer;
import io.debezium.embedded.EmbeddedEngineChangeEvent;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import io.debezium.engine.source.EngineSourceTask;
import io.debezium.engine.spi.OffsetCommitPolicy;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.ObjectOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPOutputStream;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;

public final class EventSpool implements DebeziumEngine.ChangeConsumer, DebeziumEngine.CompletionCallback {
    private static final int SEGMENT_EVENTS = 50000;
    private static final long SEGMENT_BYTES = 256L * 1024 * 1024;
    private static final long SEGMENT_MILLIS = 1000;
    /** Where all up to an end is read first: a batch takes so many segments, whatever they hold. */
    private static final long SEGMENT_MILLIS_TO_END = 60000;
    private static final long CLOSING_MILLIS = 15000;
    /** A server says each second that there is nothing new; connectors do not always notice that it is gone. */
    private static final long SILENT_MILLIS = 30000;
    private static final long FIRST_SILENT_MILLIS = 300000;
    /** A third line of a position. */
    private static final String IN_TRANSACTION = "\nin transaction";

    private final File folder;
    private final Properties settings;
    private final JsonConverter converter = new JsonConverter();
    /** What stands before the rows of a schema, by the schema. */
    private final IdentityHashMap beginnings = new IdentityHashMap();
    /** The last record of each segment that was not acknowledged, by the segment's number. */
    private final TreeMap unacknowledged = new TreeMap();
    private long segment;
    private long newestMillis;
    private int events;
    private long bytes;
    private long began;
    private FileOutputStream file;
    private OutputStream lines;
    private boolean isInSnapshot;
    private boolean hasEnded;
    /** When all up to the end of the log had been read from the server; 0: not yet. */
    private long endReadMillis;
    /** The offset up to which all is spooled or being written; whether it is within a transaction. */
    private Map reached;
    private boolean isInTransaction;
    private volatile long acknowledged = -1;
    private boolean hasWrittenEnds;
    private volatile DebeziumEngine engine;
    /** When the database must have said something; 0: it may take its time. */
    private volatile long deadline;
    private volatile boolean isStopping;

    private EventSpool(File folder, Properties settings) {
        this.folder = folder;
        this.settings = settings;
        converter.configure(Collections.singletonMap("schemas.enable", "false"), true);
    }

    /** Standard input: the settings, `name<TAB>value` a line, an empty line, then `acknowledge N` and `stop`. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Properties settings = new Properties();
        for (String line = input.readLine(); line != null && line.length() > 0; line = input.readLine()) {
            int tab = line.indexOf('\t');
            settings.setProperty(line.substring(0, tab), line.substring(tab + 1));
        }
        StatementLog log = new StatementLog(System.err, settings);
        System.setErr(log);
        EventSpool spool = new EventSpool(new File(settings.getProperty("sml.folder")), settings);
        log.spool = spool;
        spool.lock();
        spool.recover();
        spool.run(input);
    }

    /** An engine whose driver was killed ends at the end of its input, which takes a moment. */
    private void lock() throws Exception {
        RandomAccessFile lock = new RandomAccessFile(new File(folder, "lock"), "rw");
        for (int wait = 0; lock.getChannel().tryLock() == null; wait++) {
            if (wait == 300) fail("IllegalStateException", "another process reads this database into " + folder);
            Thread.sleep(100);
        }
    }

    /** Publish what was complete, remove what was not, and go on after the newest segment. */
    private void recover() throws Exception {
        long published = Math.max(newest("log"), first());
        long[] staged = numbers("staging");
        boolean isPart = staged.length > 0 && isOfSnapshot(staged[staged.length - 1]);
        for (int i = 0; i < staged.length; i++) {
            if (isPart) Files.delete(path("staging", staged[i]));
            else publish(staged[i]);
        }
        segment = isPart || staged.length == 0 ? published : staged[staged.length - 1];
        String[] rest = new File(folder, "staging").list();
        for (int i = 0; i < rest.length; i++) Files.deleteIfExists(new File(folder, "staging/" + rest[i]).toPath());
        String[] offsets = new File(folder, "offsets").list();
        for (int i = 0; i < offsets.length; i++) {
            File offset = new File(folder, "offsets/" + offsets[i]);
            if (offsets[i].endsWith(".part") || Long.parseLong(offsets[i]) != segment) Files.delete(offset.toPath());
        }
        if (path("log", segment).toFile().exists()) newestMillis = Files.getLastModifiedTime(path("log", segment)).toMillis();
        restoreOffset();
        stageTruncates();
    }

    /** A repeated snapshot begins with truncates of its tables, and ends with such: all are published together. */
    private void stageTruncates() throws IOException {
        Path truncates = new File(folder, "truncates.gz").toPath();
        if (path("offsets", segment).toFile().exists()) {
            Files.deleteIfExists(truncates);
            Files.deleteIfExists(ends());
        } else if (truncates.toFile().exists()) {
            Path part = new File(folder, "staging/part").toPath();
            Files.copy(truncates, part);
            segment++;
            storeOffset("[]".getBytes(StandardCharsets.UTF_8), "{\"snapshot\":true}".getBytes(StandardCharsets.UTF_8));
            stage(part);
        }
    }

    private boolean isOfSnapshot(long number) throws IOException {
        return !path("offsets", number).toFile().exists() || readOffset(number)[1].contains("\"snapshot\":");
    }

    private void restoreOffset() throws Exception {
        File store = new File(settings.getProperty("offset.storage.file.filename"));
        Files.deleteIfExists(store.toPath());
        if (!path("offsets", segment).toFile().exists()) return;
        String[] offset = readOffset(segment);
        // Earlier versions stored the count without saying whether it is one of a transaction.
        if (offset.length < 3) offset[1] = offset[1].replaceAll(",\"(event|row)\":\\d+", "");
        reached = (Map) converter.toConnectData("offset", offset[1].getBytes(StandardCharsets.UTF_8)).value();
        isInTransaction = offset.length > 2;
        HashMap stored = new HashMap();
        stored.put(offset[0].getBytes(StandardCharsets.UTF_8), offset[1].getBytes(StandardCharsets.UTF_8));
        ByteArrayOutputStream content = new ByteArrayOutputStream();
        ObjectOutputStream objects = new ObjectOutputStream(content);
        objects.writeObject(stored);
        objects.close();
        Files.write(store.toPath(), content.toByteArray());
    }

    private void run(BufferedReader input) throws Exception {
        Properties own = new Properties();
        own.putAll(settings);
        // By reflection: Janino's main program compiles for a version without static methods of interfaces.
        Method create = DebeziumEngine.class.getMethod("create", new Class[] {Class.class});
        DebeziumEngine.Builder builder = (DebeziumEngine.Builder) create.invoke(null, new Object[] {Json.class});
        engine = builder.using(own).using((DebeziumEngine.CompletionCallback) this)
            .using(new OffsetCommitPolicy.AlwaysCommitOffsetPolicy()).notifying((DebeziumEngine.ChangeConsumer) this).build();
        Thread thread = new Thread((Runnable) engine);
        thread.start();
        if (path("offsets", segment).toFile().exists()) deadline = System.currentTimeMillis() + FIRST_SILENT_MILLIS;
        watch();
        String line = input.readLine();
        for (; line != null && !line.equals("stop"); line = input.readLine()) {
            if (line.startsWith("acknowledge ")) {
                synchronized (this) {
                    acknowledged = Long.parseLong(line.substring(12));
                    notifyAll();
                }
            }
        }
        if (line == null) Runtime.getRuntime().halt(1);
        synchronized (this) {
            isStopping = true;
            notifyAll();
        }
        new Thread() {
            public void run() {
                try {
                    Thread.sleep(CLOSING_MILLIS);
                } catch (InterruptedException error) {
                    return;
                } finally {
                    Runtime.getRuntime().halt(0);
                }
            }
        }.start();
        try {
            engine.close();
        } catch (Exception error) {
            error.printStackTrace();
        }
        thread.join();
        Runtime.getRuntime().halt(0);
    }

    /** Hear of each event of a binary log before the connector does. It has no other way to its client than its fields. */
    private void listen() {
        if (settings.getProperty("sml.end.file") == null && settings.getProperty("connector.class", "").indexOf("Postgres") >= 0) return;
        try {
            Object[] tasks = ((List) field(engine, "tasks")).toArray();
            for (int i = 0; i < tasks.length; i++) {
                Object coordinator = field(((EngineSourceTask) tasks[i]).connectTask(), "coordinator");
                BinaryLogClient client = (BinaryLogClient) field(field(coordinator, "streamingSource"), "client");
                client.registerEventListener(new RowStatements(folder));
            }
        } catch (Exception error) {
            fail("IllegalStateException", "Debezium's client of the binary log is not where it was: " + error);
        }
    }

    private static Object field(Object owner, String name) throws Exception {
        for (Class kind = owner.getClass(); kind != null; kind = kind.getSuperclass()) {
            try {
                Field found = kind.getDeclaredField(name);
                found.setAccessible(true);
                return found.get(owner);
            } catch (NoSuchFieldException error) {
                continue;
            }
        }
        throw new NoSuchFieldException(owner.getClass().getName() + "." + name);
    }

    private void watch() {
        Thread watch = new Thread() {
            public void run() {
                while (deadline == 0 || isStopping || System.currentTimeMillis() < deadline) {
                    try {
                        Thread.sleep(1000);
                    } catch (InterruptedException error) {
                        return;
                    }
                }
                fail("engine", "it has said nothing for a while");
            }
        };
        watch.setDaemon(true);
        watch.start();
    }

    public synchronized void handleBatch(List records, DebeziumEngine.RecordCommitter committer)
        throws InterruptedException {
        deadline = 0;
        try {
            SourceRecord last = null;
            for (int i = 0; i < records.size() && !hasEnded; i++) {
                last = ((EmbeddedEngineChangeEvent) records.get(i)).sourceRecord();
                isInSnapshot = last.sourceOffset() != null && last.sourceOffset().containsKey("snapshot");
                if (isChange(last)) write((ChangeEvent) records.get(i), last.valueSchema());
                if (isChange(last)) reach(last.sourceOffset(), true);
                if (!isInSnapshot && !hasWrittenEnds) writeEnds();
                hasEnded = !isInSnapshot && isEnd(last);
                boolean isFull = events >= SEGMENT_EVENTS || bytes >= SEGMENT_BYTES;
                if (isFull) closeSegment(last, records.get(i));
                else if (hasEnded || i == records.size() - 1) endBatch(last, records.get(i));
            }
            if (hasEnded) {
                System.out.println("caught-up\t" + segment);
                while (!isStopping && acknowledged < segment) wait();
            }
            commit(committer);
            while (hasEnded && !isStopping) wait();
            deadline = isInSnapshot ? 0 : System.currentTimeMillis() + SILENT_MILLIS;
        } catch (IOException error) {
            fail(error.getClass().getSimpleName(), String.valueOf(error.getMessage()));
        }
    }

    private static boolean isChange(SourceRecord record) {
        return record.valueSchema() != null && record.valueSchema().name() != null
            && record.valueSchema().name().endsWith(".Envelope");
    }

    /** Whether all that was in the log when this process began has been read. */
    private boolean isEnd(SourceRecord record) {
        if (settings.getProperty("sml.rows.only") != null) return isEndOfSnapshot(record);
        String marker = settings.getProperty("sml.marker");
        if (marker != null) {
            Struct key = record.key() instanceof Struct ? (Struct) record.key() : null;
            return key != null && key.schema().field("prefix") != null && marker.equals(key.get("prefix"));
        }
        String end = settings.getProperty("sml.end.file");
        if (end == null || record.sourceOffset().get("file") == null) return false;
        String name = record.sourceOffset().get("file").toString();
        long position = Long.parseLong(record.sourceOffset().get("pos").toString());
        return isAtEnd(name, position) || isHeartbeatAfterEnd(record);
    }

    private boolean isAtEnd(String name, long position) {
        String end = settings.getProperty("sml.end.file");
        if (end == null) return true;
        int order = name.length() != end.length() ? name.length() - end.length() : name.compareTo(end);
        return order > 0 || order == 0 && position >= Long.parseLong(settings.getProperty("sml.end.position"));
    }

    /**
     * Statements without rows (`ALTER TABLE`, changes of other databases) move no record's position on. When the client
     * has read up to the end, all records up to there are queued: a heartbeat from after that moment comes after them.
     */
    private boolean isHeartbeatAfterEnd(SourceRecord record) {
        if (record.valueSchema() == null || !"io.debezium.connector.common.Heartbeat".equals(record.valueSchema().name())) return false;
        long now = System.currentTimeMillis();
        if (endReadMillis == 0 && clientIsAtEnd()) endReadMillis = now;
        return endReadMillis != 0 && ((Struct) record.value()).getInt64("ts_ms").longValue() > endReadMillis;
    }

    /** Whether the client that reads the log has handed over all events up to the end. */
    private boolean clientIsAtEnd() {
        try {
            MBeanServer server = ManagementFactory.getPlatformMBeanServer();
            Object[] names = server.queryNames(new ObjectName("debezium.*:type=connector-metrics,context=streaming,*"), null).toArray();
            if (names.length != 1) return false;
            Object file = server.getAttribute((ObjectName) names[0], "BinlogFilename");
            Object position = server.getAttribute((ObjectName) names[0], "BinlogPosition");
            return file != null && position != null && isAtEnd(file.toString(), ((Long) position).longValue());
        } catch (JMException error) {
            return false; // not there yet
        }
    }

    /** A notification; whether the snapshot, of which nothing follows, has ended. */
    private static boolean isEndOfSnapshot(SourceRecord record) {
        if (record.valueSchema() == null || record.valueSchema().field("aggregate_type") == null) return false;
        Struct said = (Struct) record.value();
        if (!"Initial Snapshot".equals(said.get("aggregate_type"))) return false;
        if ("ABORTED".equals(said.get("type"))) fail("engine", "the snapshot was aborted");
        return "COMPLETED".equals(said.get("type"));
    }

    private Path ends() {
        return new File(folder, "ends").toPath();
    }

    /** Say that all rows of the snapshot have come, in the segment that its last row is in. */
    private void writeEnds() throws IOException {
        hasWrittenEnds = true;
        if (ends().toFile().length() == 0) return;
        openSegment();
        lines.write(Files.readAllBytes(ends()));
        events++;
    }

    private void openSegment() throws IOException {
        if (lines != null) return;
        file = new FileOutputStream(new File(folder, "staging/part"));
        lines = new FastGzip(file);
        began = System.currentTimeMillis();
    }

    private void write(ChangeEvent event, Schema schema) throws IOException {
        openSegment();
        byte[] payload = ((String) event.value()).getBytes(StandardCharsets.UTF_8);
        lines.write(beginning(schema));
        lines.write(payload);
        lines.write('}');
        if (event.key() != null) {
            lines.write('\t');
            lines.write(((String) event.key()).getBytes(StandardCharsets.UTF_8));
        }
        lines.write('\n');
        events++;
        bytes += payload.length;
    }

    /** What stands before the payload of an event; the schema is stored before the first event that refers to it. */
    private byte[] beginning(Schema schema) throws IOException {
        byte[] known = (byte[]) beginnings.get(schema);
        if (known != null) return known;
        byte[] fields = converter.asJsonSchema(schema).get("fields").toString().getBytes(StandardCharsets.UTF_8);
        String hash = hash(fields);
        File stored = new File(settings.getProperty("sml.schemas"), hash + ".json");
        if (!stored.exists()) {
            File part = new File(stored.getParentFile(), hash + ".part");
            FileOutputStream out = new FileOutputStream(part);
            out.write(fields);
            out.getChannel().force(true);
            out.close();
            Files.move(part.toPath(), stored.toPath(), StandardCopyOption.ATOMIC_MOVE);
        }
        byte[] first = ("{\"schema\":{\"fields\":\"spool:" + hash + "\"},\"payload\":").getBytes(StandardCharsets.UTF_8);
        beginnings.put(schema, first);
        return first;
    }

    private static String hash(byte[] content) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(content);
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < digest.length; i++) text.append(Integer.toHexString((digest[i] & 0xff) + 0x100).substring(1));
            return text.toString();
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error); // every Java has it
        }
    }

    private void endBatch(SourceRecord last, Object event) throws IOException {
        if (lines != null) {
            boolean isToEnd = settings.getProperty("sml.end.file") != null || settings.getProperty("sml.marker") != null;
            boolean isLate = System.currentTimeMillis() - began >= (isToEnd ? SEGMENT_MILLIS_TO_END : SEGMENT_MILLIS);
            if (hasEnded || !isInSnapshot && isLate) closeSegment(last, event);
        } else if (!isInSnapshot) {
            // Nothing of the declared tables: only the position has moved on.
            writeOffset(last);
            unacknowledged.put(Long.valueOf(segment), event);
            publishStaged();
        }
    }

    private void closeSegment(SourceRecord last, Object event) throws IOException {
        lines.flush();
        ((GZIPOutputStream) lines).finish();
        file.getChannel().force(true);
        lines.close();
        lines = null;
        segment++;
        writeOffset(last);
        stage(new File(folder, "staging/part").toPath());
        unacknowledged.put(Long.valueOf(segment), event);
        System.out.println("events\t" + events);
        events = 0;
        bytes = 0;
        if (!isInSnapshot) publishStaged();
    }

    private void stage(Path part) throws IOException {
        // Files are read in the order of their times, whatever the clock does.
        newestMillis = Math.max(System.currentTimeMillis(), newestMillis + 1);
        Files.setLastModifiedTime(part, FileTime.fromMillis(newestMillis));
        Files.move(part, path("staging", segment), StandardCopyOption.ATOMIC_MOVE);
    }

    private void publishStaged() throws IOException {
        long[] staged = numbers("staging");
        for (int i = 0; i < staged.length; i++) publish(staged[i]);
    }

    private void publish(long number) throws IOException {
        Files.move(path("staging", number), path("log", number), StandardCopyOption.ATOMIC_MOVE);
    }

    /**
     * A binary log's offset is where a transaction begins, and how many events of it to skip. Between transactions the
     * connector counts on, the server's heartbeats too: the skipped ones would be those of the next transaction. There
     * only the position is kept, and the end of the log where it has been read: statements are not applied twice.
     */
    private void writeOffset(SourceRecord record) throws IOException {
        List name = Arrays.asList(new Object[] {settings.getProperty("name"), record.sourcePartition()});
        byte[] key = converter.fromConnectData("offset", null, name);
        reach(record.sourceOffset(), isChange(record));
        storeOffset(key, converter.fromConnectData("offset", null, reached));
    }

    private void reach(Map offset, boolean isChange) {
        if (offset.get("file") == null || isChange && offset.containsKey("event")) {
            reached = offset;
            isInTransaction = offset.get("file") != null;
            return;
        }
        boolean isEnd = hasEnded && !isAtEnd(offset.get("file").toString(), Long.parseLong(offset.get("pos").toString()));
        // A connection that begins by transactions' identifiers says first that it begins with the file.
        boolean isStreaming = reached != null && !reached.containsKey("snapshot");
        if (!isEnd && isStreaming && !isAfter(offset, reached)) return;
        reached = new HashMap(offset);
        reached.remove("event");
        reached.remove("row");
        isInTransaction = false;
        String gtids = settings.getProperty("sml.end.gtids");
        if (isEnd && (offset.get("gtids") == null || gtids != null)) {
            reached.put("file", settings.getProperty("sml.end.file"));
            reached.put("pos", Long.valueOf(settings.getProperty("sml.end.position")));
            if (offset.get("gtids") != null) reached.put("gtids", gtids);
        }
    }

    private static boolean isAfter(Map offset, Map other) {
        return !offset.get("file").equals(other.get("file"))
            || Long.parseLong(offset.get("pos").toString()) > Long.parseLong(other.get("pos").toString());
    }

    private void storeOffset(byte[] key, byte[] value) throws IOException {
        File part = new File(folder, "offsets/" + segment + ".part");
        FileOutputStream out = new FileOutputStream(part);
        out.write(key);
        out.write('\n');
        out.write(value);
        if (isInTransaction) out.write(IN_TRANSACTION.getBytes(StandardCharsets.UTF_8));
        out.getChannel().force(true);
        out.close();
        Files.move(part.toPath(), path("offsets", segment), StandardCopyOption.ATOMIC_MOVE);
    }

    private String[] readOffset(long number) throws IOException {
        return new String(Files.readAllBytes(path("offsets", number)), StandardCharsets.UTF_8).split("\n");
    }

    /** Let the database clean its log up to the newest segment that is in tables. */
    private void commit(DebeziumEngine.RecordCommitter committer) throws InterruptedException {
        Map.Entry entry = unacknowledged.floorEntry(Long.valueOf(acknowledged));
        if (entry == null) return;
        committer.markProcessed(entry.getValue());
        committer.markBatchFinished();
        unacknowledged.headMap(entry.getKey(), true).clear();
    }

    public void handle(boolean success, String message, Throwable error) {
        if (success && error == null) return;
        StringBuilder text = new StringBuilder(String.valueOf(message));
        for (Throwable cause = error; cause != null; cause = cause.getCause()) {
            text.append(" | ").append(cause.getClass().getSimpleName()).append(": ").append(cause.getMessage());
        }
        fail("engine", text.toString());
    }

    private static void fail(String kind, String message) {
        System.out.println("failed\t" + kind + "\t" + message.replaceAll("\\s+", " "));
        System.out.flush();
        Runtime.getRuntime().halt(1);
    }

    private Path path(String kind, long number) {
        String name = kind.equals("offsets") ? String.valueOf(number) : String.format("%012d.gz", new Object[] {Long.valueOf(number)});
        return new File(folder, kind + "/" + name).toPath();
    }

    /** The last number that was used before the spool began anew. */
    private long first() throws IOException {
        Path first = new File(folder, "first").toPath();
        if (!first.toFile().exists()) return 0;
        return Long.parseLong(new String(Files.readAllBytes(first), StandardCharsets.UTF_8).trim());
    }

    private long newest(String kind) {
        long[] all = numbers(kind);
        return all.length == 0 ? 0 : all[all.length - 1];
    }

    private long[] numbers(String kind) {
        String[] names = new File(folder, kind).list();
        long[] found = new long[names.length];
        int count = 0;
        for (int i = 0; i < names.length; i++) {
            if (names[i].endsWith(".gz")) found[count++] = Long.parseLong(names[i].substring(0, names[i].length() - 3));
        }
        found = Arrays.copyOf(found, count);
        Arrays.sort(found);
        return found;
    }

    /**
     * The log, in which Debezium says that it ignores a statement that its grammar does not know. It may where no table
     * that is read can be meant; else it would take later rows for those of other columns, and this process ends. The
     * log is written by the thread that reads the database's log, so nothing later has been spooled then.
     *
     * It also says when a binary log is about to be read: `RowStatements` listens from there on.
     */
    static final class StatementLog extends PrintStream {
        private static final String IGNORING = "Ignoring unparseable ";
        private static final String STREAMING = "ChangeEventSourceCoordinator - Starting streaming";
        private static final String NAME = "(`[^`]+`|\"[^\"]+\"|[\\w$\\u0080-\\uffff]+)";
        private static final Pattern OF_NO_TABLE = Pattern.compile(
            "(?is)(create|alter|drop)\\s+(or\\s+replace\\s+)?(definer\\s*=\\s*\\S+\\s+)?(aggregate\\s+)?"
            + "(procedure|function|trigger|event|user|role|server|package)\\b.*|(grant|revoke)\\b.*");
        private static final Pattern OF_ONE_TABLE = Pattern.compile(
            "(?is)(create|alter|drop)\\s+(or\\s+replace\\s+)?((online|ignore)\\s+)*table\\s+(if\\s+(not\\s+)?exists\\s+)?"
            + NAME + "(\\s*\\.\\s*" + NAME + ")?(.*)");
        private static final Pattern OF_MORE_TABLES = Pattern.compile("(?is).*\\b(rename|exchange)\\b.*");
        private final String[] patterns;
        private final String database;
        private EventSpool spool;
        private String statement;

        StatementLog(OutputStream out, Properties settings) {
            super(out, true);
            patterns = settings.getProperty("table.include.list", "").split("(?<!\\\\),");
            database = settings.getProperty("sml.database", "");
        }

        public void println(String line) {
            super.println(line);
            if (spool != null && line.endsWith(STREAMING)) spool.listen();
            int begin = line.indexOf(IGNORING);
            int quote = line.indexOf('\'', begin < 0 ? 0 : begin);
            if (begin >= 0 && quote >= 0) {
                String text = line.substring(quote + 1, Math.max(quote + 1, line.lastIndexOf('\'')));
                statement = mayConcern(text) ? text : null;
            }
        }

        /** The error follows the line that names the statement. */
        public void println(Object value) {
            super.println(value);
            if (statement != null) fail("engine", "DDL statement couldn't be parsed, with the statement '" + statement + "' " + value);
        }

        public void flush() {
            super.flush();
            if (statement != null) fail("engine", "DDL statement couldn't be parsed, with the statement '" + statement + "' ");
        }

        boolean mayConcern(String text) {
            String bare = text.replaceAll("(?s)^(\\s*/\\*.*?\\*/)*\\s*", "");
            if (OF_NO_TABLE.matcher(bare).matches()) return false;
            Matcher table = OF_ONE_TABLE.matcher(bare);
            if (!table.matches()) return true;
            boolean isQualified = table.group(9) != null;
            String rest = table.group(10);
            if (rest.startsWith("`") || rest.startsWith("\"")) return true;  // a name with such a sign in it
            if (table.group(1).equalsIgnoreCase("drop") && rest.indexOf(',') >= 0) return true;
            if (table.group(1).equalsIgnoreCase("alter") && OF_MORE_TABLES.matcher(rest).matches()) return true;
            String name = (isQualified ? table.group(7) : database) + "." + table.group(isQualified ? 9 : 7);
            for (int i = 0; i < patterns.length; i++) {
                if (Pattern.compile(patterns[i], Pattern.CASE_INSENSITIVE).matcher(name.replaceAll("[`\"]", "")).matches()) return true;
            }
            return false;
        }
    }

    /**
     * What a binary log says of rows by statements, which Debezium leaves out. The file `row_statements` gets a line for
     * each: a database, a tab, and a statement that stands for rows, or that takes rows back which the log has (of a
     * transaction with a temporary table, or a table without transactions), with the names of their tables. Rows of
     * `XA PREPARE` count as committed: `prepared` has their tables until they are (`.unread`: rows of the spool that were
     * read apart from the log since do not have them). A statement that ends with … is not known
     * whole. All is written before the connector gets the event, so before anything later is spooled.
     */
    static final class RowStatements implements BinaryLogClient.EventListener {
        private static final int LONGEST = 4000;
        private static final Pattern OF_ROWS = Pattern.compile(
            "(?is)^(?:\\s|/\\*.*?\\*/|--[^\n]*\n|#[^\n]*\n|set\\s+statement\\s.*?\\sfor\\s)*"
            + "(insert|replace|update|delete|load|select|call|do|with|execute)\\b.*");
        private static final Pattern OF_XA = Pattern.compile("(?is)^\\s*xa\\s+(start|begin|end|commit|rollback)\\s+(.*?)\\s*$");
        private final File folder;
        /** The tables of the transaction's rows: a database, a tab, a name. */
        private final TreeSet tables = new TreeSet();

        RowStatements(File folder) {
            this.folder = folder;
        }

        public void onEvent(Event event) {
            try {
                hear(event);
            } catch (IOException error) {
                fail(error.getClass().getSimpleName(), String.valueOf(error.getMessage()));
            }
        }

        private void hear(Event event) throws IOException {
            EventType type = event.getHeader().getEventType();
            EventData data = event.getData();
            if (data instanceof EventDeserializer.EventDataWrapper) data = ((EventDeserializer.EventDataWrapper) data).getInternal();
            if (data instanceof TransactionPayloadEventData) {
                Object[] events = ((TransactionPayloadEventData) data).getUncompressedEvents().toArray();
                for (int i = 0; i < events.length; i++) hear((Event) events[i]);
            } else if (data instanceof TableMapEventData) {
                TableMapEventData map = (TableMapEventData) data;
                tables.add(map.getDatabase() + "\t" + map.getTable());
            } else if (data instanceof QueryEventData) {
                QueryEventData query = (QueryEventData) data;
                hear(query.getDatabase() == null ? "" : query.getDatabase(), query.getSql());
            } else if (type == EventType.EXECUTE_LOAD_QUERY) {
                note("", "LOAD DATA", true);
            } else if (type == EventType.XID || type.name().endsWith("GTID")) {
                tables.clear();
            }
        }

        private void hear(String database, String text) throws IOException {
            String start = text.substring(0, Math.min(text.length(), 20)).trim().toUpperCase();
            Matcher xa = OF_XA.matcher(text);
            if (xa.matches()) {
                hearXa(xa.group(1).toUpperCase(), xa.group(2));
            } else if (start.startsWith("ROLLBACK")) {
                noteTables("ROLLBACK");
                if (!start.startsWith("ROLLBACK TO")) tables.clear();
            } else if (start.equals("BEGIN") || start.equals("COMMIT")) {
                tables.clear();
            } else if (OF_ROWS.matcher(text).matches()) {
                note(database, text, false);
            }
        }

        private void hearXa(String verb, String id) throws IOException {
            String name = "prepared/" + hash(id.getBytes(StandardCharsets.UTF_8));
            Path prepared = new File(folder, name + ".prepared").toPath();
            Path unread = new File(folder, name + ".unread").toPath();
            if (verb.equals("END")) {
                Files.createDirectories(prepared.getParent());
                StringBuilder names = new StringBuilder();
                Object[] all = tables.toArray();
                for (int i = 0; i < all.length; i++) names.append(all[i]).append('\n');
                Files.write(prepared, names.toString().getBytes(StandardCharsets.UTF_8));
                return;
            }
            tables.clear();
            if (verb.equals("START") || verb.equals("BEGIN")) return;
            boolean isSpooled = prepared.toFile().exists();
            if (!isSpooled && !unread.toFile().exists()) {
                note("", "XA " + verb + " " + id, true);
            } else if (!isSpooled || verb.equals("ROLLBACK")) {
                tables.addAll(Files.readAllLines(isSpooled ? prepared : unread));
                noteTables("XA " + verb);
                tables.clear();
            }
            Files.deleteIfExists(prepared);
            Files.deleteIfExists(unread);
        }

        /** Note that rows of these tables have been taken back. */
        private void noteTables(String verb) throws IOException {
            Object[] all = tables.toArray();
            for (int i = 0; i < all.length; i++) {
                String[] name = ((String) all[i]).split("\t", 2);
                note(name[0], verb + " `" + name[1] + "`", false);
            }
        }

        private void note(String database, String text, boolean isCut) throws IOException {
            String one = text.replaceAll("\\s+", " ").trim();
            if (one.length() > LONGEST || isCut) one = one.substring(0, Math.min(LONGEST, one.length())) + " \u2026";
            FileOutputStream out = new FileOutputStream(new File(folder, "row_statements"), true);
            out.write((database + "\t" + one + "\n").getBytes(StandardCharsets.UTF_8));
            out.getChannel().force(true);
            out.close();
        }
    }

    private static final class FastGzip extends GZIPOutputStream {
        FastGzip(OutputStream out) throws IOException {
            super(out, 65536);
            def.setLevel(1);
        }
    }
}
