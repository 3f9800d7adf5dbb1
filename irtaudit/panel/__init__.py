"""Does a table of safety scores support what is said with them? Metric, construct and criterion validity."""
