"""Many jobs on one machine room: what a cluster gave, and to whom."""
