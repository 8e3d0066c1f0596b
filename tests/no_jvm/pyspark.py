raise ImportError("pyspark is blocked: this test must not need a JVM")
