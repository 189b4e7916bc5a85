"""Control of running jobs (Amber, ch. 2): what is decided about pauses, breakpoints and changed values.

Pure: no Spark, no threads, no clock. The shim sends what happened and does what is answered.
"""
