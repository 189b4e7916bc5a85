package org.apache.spark.sql.regions.control

import java.io.{File, IOException}
import java.nio.file.Files
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.internal.Logging
import org.apache.spark.memory.MemoryConsumer
import org.apache.spark.rpc.{RpcCallContext, RpcEndpointRef, RpcEnv, ThreadSafeRpcEndpoint}
import org.apache.spark.sql.regions.{BoundedMap, Guard}
import org.apache.spark.sql.regions.wire.{TaskAttempt, WaitingRow}
import org.apache.spark.util.RpcUtils

/**
 * Control in an executor: what holds, for all tasks that have met a probe. The first one registers the executor's endpoint
 * with the driver's, over which the driver then reaches it: no port of ours.
 */
private[control] final class ControlledExecutor(env: SparkEnv) extends ThreadSafeRpcEndpoint with Logging {
  override val rpcEnv: RpcEnv = env.rpcEnv
  val lock = new Object
  @volatile var paused = false

  /** Parameters that were set. */
  @volatile var params: Map[String, String] = Map.empty
  val id: String = env.executorId
  private var now = Holding(-1, paused = false, Map.empty, Map.empty)
  private var functions = 0
  private val tasks = new ConcurrentHashMap[Long, ControlledTask]()
  private val workers = new PythonWorkers(() => paused)

  /** Rows of attempts that have ended well, by probe. */
  private val passed = BoundedMap[Long, java.lang.Long](10000)

  // The last one to be made: the answer is what holds.
  private val driver: RpcEndpointRef = {
    val own = rpcEnv.setupEndpoint(s"${ControlDriver.endpoint}-$id", this)
    val found = if (isDriver) rpcEnv.setupEndpointRef(rpcEnv.address, ControlDriver.endpoint)
    else RpcUtils.makeDriverRef(ControlDriver.endpoint, env.conf, rpcEnv)
    hold(ControlMessage[Holding](found.askSync[Array[Byte]]((id, own))))
    found
  }

  private def isDriver: Boolean = rpcEnv.address != null && id == "driver"

  def tell(message: ControlMessage): Unit = driver.send(message.bytes)

  def earlier(starting: Starting): Earlier = ControlMessage[Earlier](driver.askSync[Array[Byte]](starting.bytes))

  def probe(info: ProbeInfo, context: TaskContext): Probe = {
    val task = this.task(context)
    info.state.foreach(hold)
    lock.synchronized {
      task.probes.getOrElseUpdate(info.id, {
          val probe = new Probe(info, task, this)
          arm(probe)
          probe
        })
    }
  }

  /** Of the thread that runs it. */
  def task(context: TaskContext): ControlledTask =
    tasks.computeIfAbsent(context.taskAttemptId(), _ => new ControlledTask(context, this))

  private def arm(probe: Probe): Unit = probe.arm(now.points.getOrElse(probe.info.id, Nil))

  def ended(task: ControlledTask): Unit = lock.synchronized {
    val lost = task.context.isFailed() || task.context.isInterrupted()
    task.probes.values.foreach { probe =>
      probe.ended(lost)
      if (!lost) passed.merge(probe.info.id, probe.rows, (a, b) => java.lang.Long.sum(a, b))
    }
    if (lost) tell(Gone(task.attempt))
    tasks.remove(task.context.taskAttemptId())
  }

  /** Called with the lock. */
  def answered(key: String): Boolean = now.answers.contains(key) || now.answers.contains(Holding.everyRow)

  def answer(key: String): Answered = lock.synchronized(now.answers.getOrElse(key, Answered("pass")))

  private def hold(next: Holding): Unit = {
    lock.synchronized {
      if (next.version > now.version) {
        now = next
        write(next.functions)
        paused = next.paused
        params = next.params
        tasks.values.asScala.foreach(_.probes.values.foreach(arm))
        lock.notifyAll()
      }
    }
    workers.follow()
  }

  /** For Python workers, before one is told of them; the folder goes with the executor. */
  private def write(known: Seq[Array[Byte]]): Unit = known.zipWithIndex.drop(functions).foreach { case (code, before) =>
    functions = before + 1
    val file = new File(env.blockManager.diskBlockManager.localDirs.head, s"spark-regions-function-$functions")
    try Files.write(file.toPath, code)
    catch { case error: IOException => logError(s"cannot write $file: functions that call it fail", error) }
  }

  private def counted(attempt: Long, number: Int)(act: Probe#Counted => Unit): Unit = lock.synchronized {
    for {
      task <- Option(tasks.get(attempt)).toSeq
      probe <- task.probes.values
      count <- probe.counts.get(number)
    } {
      act(count)
      probe.aim()
    }
    lock.notifyAll()
  }

  override def receive: PartialFunction[Any, Unit] = { case bytes: Array[Byte] =>
    Guard.run(env.conf, "a control message")(
      ControlMessage[ControlMessage](bytes) match {
        case next: Holding => hold(next)
        case Target(attempt, number, round, amount, last) => counted(attempt, number)(_.target(round, amount, last))
        case Ask(attempt, number, round) => counted(attempt, number)(_.ask(round))
        case other => logWarning(s"spark-regions: an executor takes no $other")
      })
  }

  override def receiveAndReply(context: RpcCallContext): PartialFunction[Any, Unit] = { case "snapshot" =>
    context.reply(snapshot().bytes)
  }

  private def snapshot(): Snapshot = {
    val stopped = workers.allStopped
    val shown = lock.synchronized(tasks.values.asScala.toSeq).map(_.shown(paused && stopped))
    val rows = passed.synchronized(passed.asScala.map { case (probe, count) => probe -> count.longValue }.toMap)
    Snapshot(id, shown, rows, workers.shown)
  }
}

private[control] object ControlledExecutor {

  private var running: Option[(SparkEnv, ControlledExecutor)] = None

  /** One for the life of an executor, or of a local application. */
  def of(env: SparkEnv): ControlledExecutor = synchronized {
    running match {
      case Some((known, executor)) if known eq env => executor
      case _ =>
        val started = new ControlledExecutor(env)
        running = Some((env, started))
        started
    }
  }
}

/** An attempt that has met a probe. */
private[control] final class ControlledTask(val context: TaskContext, executor: ControlledExecutor) {
  import ControlledTask._

  val probes = scala.collection.mutable.LinkedHashMap.empty[Long, Probe]
  val attempt: TaskAttempt = TaskAttempt(context.stageId(), context.partitionId(), context.taskAttemptId())

  /** What earlier attempts took of parameters. */
  lazy val earlier: Earlier = executor.earlier(
    Starting(attempt, again = context.attemptNumber() + context.stageAttemptNumber() > 0))
  private val places = scala.collection.mutable.HashMap.empty[(Long, Int), Int]
  private val thread = Thread.currentThread()
  private var standing: Option[(String, Seq[(String, String)])] = None
  private var asked = 0L
  context.addTaskCompletionListener[Unit](_ => executor.ended(this))

  /** Of a parameter that is about to be computed with. */
  def place(param: Long, partition: Int): Place = synchronized {
    val number = places.getOrElse((param, partition), 0)
    places((param, partition)) = number + 1
    Place(param, partition, number)
  }

  /** Called with the executor's lock. */
  def standingAt(operator: String, row: Seq[(String, String)])(wait: => Unit): Unit = {
    standing = Some(operator -> row)
    try wait
    finally standing = None
  }

  /** All stands until somebody has said what becomes of a row. */
  def ask(row: WaitingRow): Answered = {
    val key = Holding.key(row)
    executor.lock.synchronized {
      standingAt(row.operator, row.values.toSeq) {
        executor.tell(Held(row))
        while (executor.paused || !executor.answered(key)) await()
      }
    }
    val answer = executor.answer(key)
    if (answer.action != "fail") executor.tell(Gone(attempt))
    answer
  }

  /** Of a row that failed: which of the attempt's. */
  def nextBad(): Long = {
    asked += 1
    asked
  }

  /** Gives the lock away for a moment; a task that is cancelled ends here. */
  def await(): Unit = {
    context.killTaskIfInterrupted()
    executor.lock.wait(lookMillis)
  }

  /** Ends the job, not this attempt alone. */
  def fail(why: String): Nothing = {
    executor.tell(Failing(attempt, why))
    // The driver cancels the stage, whose reason is then the user's error; a failure of ours would be tried again.
    executor.lock.synchronized((1 to failLooks).foreach(_ => await()))
    throw new IllegalStateException(s"stopped at a breakpoint: $why")
  }

  /** @param workersStand whether the Python workers of this executor have been stopped */
  def shown(workersStand: Boolean): TaskShown = {
    val stack = thread.getStackTrace.toSeq.map(frame => s"${frame.getClassName}.${frame.getMethodName}")
    val top = stack.take(frames)
    val python = top.exists(_.startsWith("org.apache.spark.api.python")) ||
      top.exists(_.startsWith("sun.nio.ch")) && stack.exists(_.contains("PythonRunner"))
    val memory = consumers.filter(_.getUsed > 0).groupMapReduce(each => holder(each.toString))(_.getUsed)(_ + _)
    executor.lock.synchronized {
      val at = standing.map(_._1).getOrElse(if (python) "a Python worker" else "")
      val rows = probes.values.map(probe => probe.info.id -> probe.rows).toMap
      TaskShown(attempt.stage, attempt.partition, attempt.number, executor.id,
        standing.isDefined || python && workersStand, at, standing.toSeq.flatMap(_._2), rows, top, memory)
    }
  }

  private def consumers: Seq[MemoryConsumer] = {
    val manager = context.taskMemoryManager()
    manager.synchronized(held.get(manager).asInstanceOf[java.util.Set[MemoryConsumer]].asScala.toSeq)
  }
}

private object ControlledTask {
  val lookMillis = 50L
  val failLooks = 200
  val frames = 12

  /** `org.apache.spark.unsafe.map.BytesToBytesMap@6601849b` is told as `BytesToBytesMap`. */
  def holder(name: String): String = name.replaceAll("@[0-9a-f]+$", "").replaceAll("^([a-z]\\w*\\.)+", "")

  /** Spark shows them in its log only. */
  lazy val held: java.lang.reflect.Field = {
    val field = classOf[org.apache.spark.memory.TaskMemoryManager].getDeclaredField("consumers")
    field.setAccessible(true)
    field
  }
}
