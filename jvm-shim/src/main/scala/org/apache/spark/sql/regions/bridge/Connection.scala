package org.apache.spark.sql.regions.bridge

import java.io.{BufferedInputStream, BufferedOutputStream, DataInputStream, DataOutputStream, IOException}
import java.net.{InetAddress, InetSocketAddress, Socket}
import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, LinkedBlockingQueue, TimeUnit}
import java.util.concurrent.atomic.{AtomicBoolean, AtomicInteger, AtomicLong}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.internal.Logging
import org.apache.spark.sql.regions.wire.{Frames, Hello}

private final class Outgoing(val body: Array[Byte], val isEvent: Boolean)

/**
 * One connection to the planner. All frames leave through one queue, so that a request follows everything observed
 * before it; the caller's thread never touches the socket, so that a planner which stops reading cannot block it.
 *
 * @param onClose called once, with the reason
 */
final class Connection(port: Int, queueLimit: Int, onClose: Throwable => Unit) extends Logging {
  import Connection.nobodyAsked

  private val socket = new Socket()
  socket.setTcpNoDelay(true)
  socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress, port), 2000)
  private val in = new DataInputStream(new BufferedInputStream(socket.getInputStream, 1 << 16))
  private val out = new DataOutputStream(new BufferedOutputStream(socket.getOutputStream, 1 << 16))

  private val queue = new LinkedBlockingQueue[Outgoing]()
  private val events = new AtomicInteger()
  private val unwritten = new AtomicInteger()
  private val pending = new ConcurrentHashMap[Long, CompletableFuture[JsonNode]]()
  private val closed = new AtomicBoolean()
  // Of the first request since the last answer; nobody answers in the time in which nobody asks.
  private val askedSince = new AtomicLong(nobodyAsked)

  /** The first exchange, before the threads start. */
  def hello(message: Hello, timeoutMillis: Int): JsonNode = {
    socket.setSoTimeout(timeoutMillis)
    Frames.write(out, Frames.encode(message))
    out.flush()
    val (answer, _) = Frames.read(in)
    socket.setSoTimeout(0)
    start("writer", () => writeAll())
    start("reader", () => readAll())
    answer
  }

  def request(seq: Long, body: Array[Byte]): CompletableFuture[JsonNode] = {
    val answer = new CompletableFuture[JsonNode]()
    pending.put(seq, answer)
    askedSince.compareAndSet(nobodyAsked, System.nanoTime())
    put(new Outgoing(body, false))
    if (closed.get) fail(new IOException("connection closed"))
    answer
  }

  /** The answer, should it still come, is dropped. */
  def forget(seq: Long): Unit = pending.remove(seq)

  /** False when the queue is full and the event was dropped. Only events are bounded; requests wait for an answer. */
  def observe(body: Array[Byte]): Boolean =
    if (closed.get || events.incrementAndGet() > queueLimit) {
      events.decrementAndGet()
      false
    } else {
      put(new Outgoing(body, true))
      true
    }

  private def put(message: Outgoing): Unit = {
    unwritten.incrementAndGet()
    queue.put(message)
  }

  /** How long a request has been waiting without an answer to any; 0 where nothing was asked. */
  def silentMillis: Long = askedSince.get match {
    case Connection.nobodyAsked => 0
    case since => (System.nanoTime() - since) / 1000000
  }

  /** Waits until everything queued has been handed to the socket. */
  def drain(timeoutMillis: Long): Unit = {
    val end = System.nanoTime() + timeoutMillis * 1000000
    while (unwritten.get > 0 && !closed.get && System.nanoTime() < end) Thread.sleep(2)
  }

  def close(reason: Throwable): Unit = if (closed.compareAndSet(false, true)) {
    try socket.close()
    catch { case _: IOException => }
    fail(reason)
    onClose(reason)
  }

  private def fail(reason: Throwable): Unit =
    pending.keySet.asScala.toSeq.foreach { seq =>
      Option(pending.remove(seq)).foreach(_.completeExceptionally(reason))
    }

  private def writeAll(): Unit =
    try {
      while (!closed.get) {
        var next = queue.poll(1, TimeUnit.SECONDS)
        var written = 0
        while (next != null) {
          if (next.isEvent) events.decrementAndGet()
          Frames.write(out, next.body)
          written += 1
          next = queue.poll()
        }
        out.flush()
        unwritten.addAndGet(-written)
      }
    } catch { case error: IOException => close(error) }

  private def readAll(): Unit =
    try {
      while (!closed.get) {
        val (answer, seq) = Frames.read(in)
        val waiting = seq.map(pending.remove(_)).orNull
        askedSince.set(if (pending.isEmpty) nobodyAsked else System.nanoTime())
        if (waiting != null) waiting.complete(answer)
        else logDebug("Dropped a late answer of the planner")
      }
    } catch { case error: IOException => close(error) }

  private def start(name: String, body: Runnable): Unit = {
    val thread = new Thread(body, s"spark-regions-planner-$name")
    thread.setDaemon(true)
    thread.start()
  }
}

object Connection {
  private val nobodyAsked = Long.MinValue
}
