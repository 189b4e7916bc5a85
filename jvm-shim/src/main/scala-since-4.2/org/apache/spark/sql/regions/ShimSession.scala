package org.apache.spark.sql.regions

import org.apache.spark.internal.config.{ConfigBindingPolicy, ConfigBuilder}
import org.apache.spark.sql.execution.columnar.CachedRDDBuilder
import org.apache.spark.ui.CspNonce

private[regions] trait ShimSession {

  /** A view that was created with other values must not bring them back. */
  def unbound(conf: ConfigBuilder): ConfigBuilder = conf.withBindingPolicy(ConfigBindingPolicy.NOT_APPLICABLE)

  def cachedBytes(builder: CachedRDDBuilder): Long = builder.materializedSizeInBytes

  /** What a script of the page that is being drawn has to give; null where Spark asks for nothing. */
  def scriptNonce: String = CspNonce.get
}
