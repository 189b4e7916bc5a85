package org.apache.spark.sql.regions

import java.util.{Collections, LinkedHashMap => JLinkedMap, Map => JMap}

/** Maps that never grow beyond a limit, for several threads. */
private[regions] object BoundedMap {

  /**
   * Forgets the eldest entry for each one beyond `limit`.
   *
   * @param byUse the eldest is the one that was asked for longest ago, not the one that was put first
   */
  def apply[K, V](limit: Int, byUse: Boolean = false): JMap[K, V] =
    Collections.synchronizedMap(new JLinkedMap[K, V](16, 0.75f, byUse) {
      override def removeEldestEntry(eldest: JMap.Entry[K, V]): Boolean = size > limit
    })
}
