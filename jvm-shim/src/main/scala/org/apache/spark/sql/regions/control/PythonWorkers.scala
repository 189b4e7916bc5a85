package org.apache.spark.sql.regions.control

import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._
import scala.jdk.OptionConverters._

import org.apache.spark.internal.Logging

/**
 * The Python workers of this JVM, which compute ahead of the rows that it takes: stopped by signals while all is paused.
 * A worker that is forked meanwhile is stopped a moment later.
 */
private[control] final class PythonWorkers(paused: () => Boolean) extends Logging {
  import PythonWorkers._

  @volatile private var stopped = Set.empty[Long]
  private var follower: Option[Thread] = None

  sys.addShutdownHook(goOn())

  /** To be called whenever it may have changed whether all is paused. */
  def follow(): Unit = synchronized {
    if (paused() && follower.isEmpty) {
      val thread = new Thread(() => stopWhilePaused(), "spark-regions-python-workers")
      thread.setDaemon(true)
      follower = Some(thread)
      thread.start()
    }
  }

  private def stopWhilePaused(): Unit = {
    var on = true
    while (on) {
      val found = workers.toSet
      if ((found -- stopped).nonEmpty) send("STOP", found -- stopped)
      stopped = found
      Thread.sleep(lookMillis)
      synchronized {
        if (!paused()) {
          goOn()
          follower = None
          on = false
        }
      }
    }
  }

  private def goOn(): Unit = {
    if (stopped.nonEmpty) send("CONT", stopped)
    stopped = Set.empty
  }

  def allStopped: Boolean = {
    val found = workers
    found.nonEmpty && found.forall(stopped)
  }

  /** By process, whether it is stopped. */
  def shown: Map[Long, Boolean] = workers.map(pid => pid -> stopped(pid)).toMap

  private def send(signal: String, pids: Set[Long]): Unit = {
    // The shell's own, which is there in small images, too. One that has ended makes it fail for itself only.
    val process = new ProcessBuilder("sh", "-c", s"kill -$signal ${pids.mkString(" ")}")
      .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start()
    if (!process.waitFor(killSeconds, TimeUnit.SECONDS)) logWarning(s"kill -$signal of Python workers takes long")
  }
}

private object PythonWorkers {
  val lookMillis = 20L
  val killSeconds = 5L

  /** The daemon goes on: it forks workers for tasks that start. */
  def workers: Seq[Long] = ProcessHandle.current().children().toList.asScala.toSeq.flatMap { child =>
    val command = child.info().commandLine().toScala.getOrElse("")
    if (command.contains("pyspark.daemon")) child.children().toList.asScala.map(_.pid)
    else if (command.contains("pyspark.worker")) Seq(child.pid)
    else Nil
  }
}
