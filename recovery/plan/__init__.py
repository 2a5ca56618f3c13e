"""The plan: the reviewed choice of leaders, with what must still be true when it is applied.

Text in, text out: the file on disk is console/plan_files.py.
"""
