"""Control of running jobs (Amber, ch. 2): what is decided about pauses and breakpoints.

Pure: no Spark, no threads, no clock. The shim sends what happened and does what is answered.
"""
