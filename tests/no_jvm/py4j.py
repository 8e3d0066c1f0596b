raise ImportError("py4j is blocked: this test must not need a JVM")
