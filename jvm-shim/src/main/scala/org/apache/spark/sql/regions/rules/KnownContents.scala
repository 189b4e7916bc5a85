package org.apache.spark.sql.regions.rules

import org.apache.hadoop.fs.{FileStatus, Path}

import org.apache.spark.sql.regions.BoundedMap

/**
 * Files whose bytes are known to this driver. Where the order of rows is told by the files that they are read from, such a file
 * stands there as what is in it, and not as its path: equal bytes are equal rows in an equal order.
 */
private[regions] object KnownContents {
  private val known = BoundedMap[(String, Long, Long), String](100000, byUse = true)

  /** @param text digest of the bytes, and the folder below that of the write, which tells values of columns */
  def put(file: Path, state: FileState, text: String): Unit =
    known.put((file.toString, state.length, state.modified), text)

  def told(file: FileStatus): String = {
    val path = file.getPath.toString
    Option(known.get((path, file.getLen, file.getModificationTime))).getOrElse(path)
  }
}
