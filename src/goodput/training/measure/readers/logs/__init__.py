"""Text logs of others: story.py is what they tell, text.py the scan, formats/ one file a kind."""
