package org.apache.spark.sql.regions.rules

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import scala.util.control.NoStackTrace

import org.apache.spark.sql.regions.Refusal

/** Unwinds to the node that is being signed. */
private[rules] final class Refused(val refusal: Refusal) extends Exception(refusal.toString) with NoStackTrace

private[rules] object Refused {
  def apply(code: String, detail: String = ""): Nothing = throw new Refused(Refusal(code, detail))
}

/** SHA-256 truncated to 32 hex characters, over length-prefixed parts so that no two lists of parts read alike. */
private[regions] object Digest {
  private val sha = ThreadLocal.withInitial[MessageDigest](() => MessageDigest.getInstance("SHA-256"))
  private val hexDigits = "0123456789abcdef".toCharArray

  def apply(tag: String, parts: String*): String = of(tag, parts)

  def of(tag: String, parts: Iterable[String]): String = ofBytes(join(tag, parts).getBytes(UTF_8))

  def ofBytes(bytes: Array[Byte]): String = {
    val digest = sha.get()
    digest.reset()
    hex(digest.digest(bytes), 16)
  }

  /** The parts as one string that can be told apart from every other list of parts. */
  def join(tag: String, parts: Iterable[String]): String = {
    val text = new java.lang.StringBuilder(64 + 40 * parts.size)
    text.append(tag)
    parts.foreach(part => text.append('|').append(part.length).append(':').append(part))
    text.toString
  }

  def hex(bytes: Array[Byte], length: Int): String = {
    val text = new Array[Char](length * 2)
    var i = 0
    while (i < length) {
      text(2 * i) = hexDigits((bytes(i) >> 4) & 15)
      text(2 * i + 1) = hexDigits(bytes(i) & 15)
      i += 1
    }
    new String(text)
  }
}
