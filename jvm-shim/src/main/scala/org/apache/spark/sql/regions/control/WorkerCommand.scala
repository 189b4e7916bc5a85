package org.apache.spark.sql.regions.control

import java.io.ByteArrayOutputStream
import java.nio.{ByteBuffer, ByteOrder}
import java.nio.charset.StandardCharsets.UTF_8

import scala.io.Source

import org.apache.spark.sql.regions.wire.Frames

/**
 * A pickled Python function, wrapped by what runs in workers beside it; written by hand, since the driver may have no Python.
 *
 * @param name of the file with what wraps it
 */
private[control] final class WorkerCommand(name: String) {
  private lazy val source: Array[Byte] = {
    val stream = getClass.getResourceAsStream(s"/org/apache/spark/sql/regions/control/workers/$name.py")
    try Source.fromInputStream(stream, UTF_8.name).mkString.getBytes(UTF_8)
    finally stream.close()
  }

  /** `exec(source, scope); scope["wrap"](command, settings)`, as opcodes of pickle's protocol 3. */
  def wrapped(command: Array[Byte], settings: Map[String, Any]): Array[Byte] = {
    val out = new ByteArrayOutputStream(source.length + command.length + 1000)
    def op(codes: Int*): Unit = codes.foreach(out.write)
    def global(module: String, name: String): Unit = out.write(s"c$module\n$name\n".getBytes(UTF_8))
    def sized(code: Char, bytes: Array[Byte]): Unit = {
      op(code)
      out.write(ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(bytes.length).array)
      out.write(bytes)
    }
    def text(bytes: Array[Byte]): Unit = sized('X', bytes)
    val (protocol, tuple2) = (0x80, 0x86)
    op(protocol, 3)
    // The scope, kept as number 0. Its name keeps the file from taking itself for a program.
    op('}', 'q', 0)
    text("__name__".getBytes(UTF_8))
    text(s"spark_regions_$name".getBytes(UTF_8))
    op('s', '0')
    global("builtins", "exec")
    text(source)
    op('h', 0, tuple2, 'R', '0')
    global("operator", "getitem")
    op('h', 0)
    text("wrap".getBytes(UTF_8))
    op(tuple2, 'R')
    sized('B', command)
    text(Frames.json.writeValueAsBytes(settings))
    op(tuple2, 'R', '.')
    out.toByteArray
  }
}

private[control] object WorkerCommand {
  val badRows = new WorkerCommand("bad_rows_worker")
  val replaceable = new WorkerCommand("replaceable_worker")
}
