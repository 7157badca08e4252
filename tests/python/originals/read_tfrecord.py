# SPDX-License-Identifier: Apache-2.0
"""Prints the image in hexadecimal and the label of each record of the file in argv[1], as TensorFlow reads them."""

import json
import sys

import tensorflow as tf

features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
rows = []
for record in tf.data.TFRecordDataset(sys.argv[1]):
    example = tf.io.parse_single_example(record, features)
    rows.append([example["image"].numpy().hex(), int(example["label"])])
print(json.dumps(rows))
