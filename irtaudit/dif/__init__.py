"""Test 2: do equally able models of two groups meet the same items?"""
