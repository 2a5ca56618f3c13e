"""Encoding and decoding: kio's messages, messages that kio lacks, and large answers as columns."""
