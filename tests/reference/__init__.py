"""A slow, obvious model of the ATmega328P, written from the documents only; it shares no code with
the package.
"""
