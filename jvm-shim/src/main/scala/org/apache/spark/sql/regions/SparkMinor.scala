package org.apache.spark.sql.regions

/** What differs between Spark's minors: a minor takes each trait from one of the folders beside `scala`, as the pom says. */
object SparkMinor extends ShimFiles with ShimSession with ShimPlans
