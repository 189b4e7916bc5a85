package org.apache.spark.sql.regions.exec

import scala.util.control.NonFatal

/**
 * What our own code may catch: the user's query goes on without us. LinkageError, because a vendor's build can lack a
 * class. OutOfMemoryError, because the writer's buffers are what we then give back.
 */
private[exec] object Failures {
  def unapply(error: Throwable): Option[Throwable] = error match {
    case NonFatal(_) | _: LinkageError | _: OutOfMemoryError => Some(error)
    case _ => None
  }

  def text(error: Throwable): String = {
    val message = Option(error.getMessage).map(_.linesIterator.take(1).mkString).filter(_.nonEmpty)
    error.getClass.getSimpleName + message.map(": " + _.take(300)).getOrElse("")
  }
}
