"""Other engines that run a part of a query, with Spark's rows: what is proven equal, how it is said, who runs it."""
