"""Generated programs, with the plugin against plain Spark."""
