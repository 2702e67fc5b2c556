"""`proctor variants`: build, read and exchange rewordings, and learn the gate's window."""
