package org.apache.spark.sql.regions.rules

import java.lang.ref.WeakReference
import java.util.{Map => JMap}

import scala.jdk.CollectionConverters._

import py4j.{Gateway, Py4JServerConnection}

import org.apache.spark.internal.Logging
import org.apache.spark.sql.classic.Dataset

/**
 * DataFrames that a PySpark program still refers to, and so may use again. The gateway keeps an object for Python until
 * Python's collector has let go of it. So a temporary can look held for a while, but a variable never looks free.
 *
 * Nothing leads from a SparkContext to its gateway. The threads that serve Python run a connection of it.
 */
private[regions] object HeldDataFrames extends Logging {
  @volatile private var gateway = new WeakReference[Gateway](null)
  @volatile private var readable = true

  /** Remembers the gateway, if this thread serves a Python program; some actions run on other threads. */
  def look(): Unit = if (gateway.get == null && readable) {
    try served(Thread.currentThread).foreach(found => gateway = new WeakReference(found))
    catch {
      // Another JVM, other access flags, another py4j: then only what has been used twice is known to be shared.
      case e @ (_: ReflectiveOperationException | _: RuntimeException | _: LinkageError) => unreadable(e)
    }
  }

  /** Ids of the DataFrames that Python holds now. */
  def ids(): Set[Long] = {
    look()
    Option(gateway.get).fold(Set.empty[Long]) { found =>
      found.getBindings.values.asScala.collect { case dataset: Dataset[_] => dataset.id }.toSet
    }
  }

  private def unreadable(e: Throwable): Unit = {
    readable = false
    logInfo(s"spark-regions: cannot see which DataFrames the program holds, so none is stored at its first use: $e")
  }

  private def served(thread: Thread): Option[Gateway] = work(thread) match {
    case connection: Py4JServerConnection =>
      val commands = valueOf(connection, "commands").asInstanceOf[JMap[String, AnyRef]]
      commands.values.asScala.headOption.map(valueOf(_, "gateway").asInstanceOf[Gateway])
    case _ => None
  }

  /** The Runnable of a thread; since JDK 19 it is kept one object further. */
  private def work(thread: Thread): AnyRef = {
    val fields = classOf[Thread].getDeclaredFields.map(_.getName).toSet
    if (fields("holder")) valueOf(valueOf(thread, "holder"), "task") else valueOf(thread, "target")
  }

  private def valueOf(owner: AnyRef, name: String): AnyRef = {
    val classes = Iterator.iterate[Class[_]](owner.getClass)(_.getSuperclass).takeWhile(_ != null)
    val field = classes.flatMap(_.getDeclaredFields).find(_.getName == name)
      .getOrElse(throw new NoSuchFieldException(s"${owner.getClass.getName}.$name"))
    field.setAccessible(true)
    field.get(owner)
  }
}
