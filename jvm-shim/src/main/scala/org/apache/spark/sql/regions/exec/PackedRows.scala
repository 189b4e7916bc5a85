package org.apache.spark.sql.regions.exec

import java.io.OutputStream
import java.nio.ByteBuffer

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/**
 * Rows in Spark's own binary format, one behind the other, each after its length.
 *
 * @param limit bytes that they may take
 */
private[exec] final class PackedRows(limit: Int) {
  private var bytes = new Array[Byte](math.min(limit, PackedRows.firstBytes))
  private var used = 0

  def size: Int = used

  /** False, and nothing is added, where it would be more than the limit. */
  def add(row: UnsafeRow): Boolean = {
    val length = row.getSizeInBytes
    val end = used.toLong + PackedRows.head + length
    if (end > limit) false
    else {
      if (end > bytes.length) {
        bytes = java.util.Arrays.copyOf(bytes, math.min(limit.toLong, math.max(end, 2L * bytes.length)).toInt)
      }
      ByteBuffer.wrap(bytes, used, PackedRows.head).putInt(length)
      Platform.copyMemory(
        row.getBaseObject, row.getBaseOffset, bytes, Platform.BYTE_ARRAY_OFFSET + used + PackedRows.head, length)
      used = end.toInt
      true
    }
  }

  def toBytes: Array[Byte] = java.util.Arrays.copyOf(bytes, used)

  /** Writes all to a stream, and is empty again. */
  def drain(out: OutputStream): Unit = {
    out.write(bytes, 0, used)
    used = 0
  }
}

private[exec] object PackedRows {
  private val head = 4
  private val firstBytes = 4096

  /** One row object, moved over the bytes, as Spark's own scans do it. */
  def iterator(bytes: Array[Byte], fields: Int): Iterator[UnsafeRow] = new Iterator[UnsafeRow] {
    private val row = new UnsafeRow(fields)
    private var at = 0

    override def hasNext: Boolean = at < bytes.length

    override def next(): UnsafeRow = {
      val size = ByteBuffer.wrap(bytes, at, head).getInt
      row.pointTo(bytes, Platform.BYTE_ARRAY_OFFSET + at + head, size)
      at += head + size
      row
    }
  }
}
