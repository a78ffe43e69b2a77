"""What is asked, picked and read on top of the conversation: one dialog a file, and what puts them up."""
