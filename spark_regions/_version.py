"""The one version of the package, the jar and the protocol hand-shake; a test keeps `jvm-shim/pom.xml` equal."""

__version__ = "0.1.0"
