package org.apache.spark.sql.regions.control

import org.apache.spark.sql.regions.wire.TaskAttempt

/** What an attempt has to repeat, as attempts begin, take values, and end in any order. */
class TakenValuesSuite extends munit.FunSuite {
  private val place = Place(1, 0, 0)

  private def starting(number: Long, partition: Int = 0, stage: Int = 0): Starting =
    Starting(TaskAttempt(stage, partition, number), again = number > 1)

  private final class Log(most: Int = 10) {
    val taken = new TakenValues(most)

    def starts(number: Long, partition: Int = 0, skips: Boolean = false): Earlier =
      taken.started(starting(number, partition), "shuffle 7", skips)
    def takes(number: Long, row: Long, value: String, replayed: Boolean = false): Unit =
      taken.took(Took(starting(number).attempt, place, "low", value, row, replayed, ""))
    def repeats(number: Long): (Seq[(Long, String)], Boolean) = {
      val track = starts(number).at(place)
      (track.values.map(each => (each.row, each.value)), track.whole)
    }
  }

  test("a lost attempt is repeated as far as it came, and what the next one takes after that as well") {
    val log = new Log
    assertEquals(log.repeats(1), (Nil, false))
    log.takes(1, 1, "9")
    log.takes(1, 1001, "5")
    assertEquals(log.repeats(2), (Seq((1L, "9"), (1001L, "5")), false))
    log.takes(2, 1, "9", replayed = true)
    assertEquals(log.repeats(3), (Seq((1L, "9"), (1001L, "5")), false), "lost before it came so far")
    log.takes(3, 1001, "7")
    assertEquals(log.repeats(4), (Seq((1L, "9"), (1001L, "7")), false))
  }

  test("the attempt whose rows Spark takes is repeated, whatever others of the task do meanwhile") {
    val log = new Log
    log.starts(1)
    log.takes(1, 10, "5")
    log.starts(2)
    log.takes(2, 20, "6")
    log.taken.ended(1)
    log.takes(2, 30, "7")
    log.taken.ended(2)
    assertEquals(log.repeats(3), (Seq((10L, "5")), true))
    log.takes(3, 15, "8")
    assertEquals(log.repeats(4), (Seq((10L, "5"), (15L, "8")), false), "it had to compute otherwise, and is lost")
    assertEquals(log.repeats(2), (Seq((10L, "5"), (15L, "8")), false))
    assertEquals(log.starts(5).attempt, Some(4L), "not the one that Spark has given up")
  }

  test("what is told once an attempt has ended belongs to its rows") {
    val log = new Log
    log.starts(1)
    log.taken.ended(1)
    log.takes(1, 10, "5")
    assertEquals(log.repeats(2), (Seq((10L, "5")), true))
  }

  test("rows that were left out stay so for the attempts that follow") {
    val log = new Log
    assert(!log.starts(1).skipped)
    log.taken.skip()
    assert(log.starts(2).skipped && log.starts(3).skipped)
    log.taken.ended(3)
    log.taken.skip()
    assert(log.starts(4).skipped && !log.starts(5, partition = 1).skipped)
  }

  test("what is forgotten is told to those that come again") {
    val log = new Log(most = 2)
    log.starts(1)
    log.starts(2, partition = 1)
    assert(!log.starts(3, partition = 1).forgotten)
    log.starts(4, partition = 2)
    assert(log.starts(5).forgotten)
    assert(!log.taken.started(Starting(TaskAttempt(0, 9, 6), again = false), "shuffle 8", skips = false).forgotten)
  }
}
