"""Test 1: how many things does one score measure?"""
