// RUN: distc-opt %s --split-input-file --verify-diagnostics

// expected-error @below {{attribute 'train_op' failed to satisfy constraint: string attribute that names a node}}
dfg.graph attributes {train_op = ["train"]} {
}

// -----

// expected-error @below {{attribute 'init_op' failed to satisfy constraint: string attribute that names a node}}
dfg.graph attributes {init_op = ""} {
}

// -----

// expected-error @below {{attribute 'loss' failed to satisfy constraint: string attribute that names a node}}
dfg.graph attributes {loss = ":0"} {
}

// -----

// expected-error @below {{attribute 'fetches' failed to satisfy constraint: names of nodes or of their tensors}}
dfg.graph attributes {fetches = ["accuracy:0", 1]} {
}

// -----

// expected-error @below {{attribute 'candidates' failed to satisfy constraint: dictionary of lists of names}}
dfg.graph attributes {candidates = {loss = "a:0"}} {
}

// -----

// expected-error @below {{attribute 'summaries' failed to satisfy constraint: dictionary of texts}}
dfg.graph attributes {summaries = {"loss:0" = 1}} {
}

// -----

// expected-error @below {{attribute 'smallest_batch' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
dfg.graph attributes {smallest_batch = 0} {
}

// -----

// expected-error @below {{attribute 'saver' failed to satisfy constraint: dictionary of texts with filename, save and restore}}
dfg.graph attributes {saver = {filename = "save/Const:0", save = "save/control_dependency:0"}} {
}

// -----

// expected-error @below {{attribute 'versions' failed to satisfy constraint: dictionary of versions}}
dfg.graph attributes {versions = {producer = "22"}} {
}

// -----

// expected-error @below {{attribute 'objects' failed to satisfy constraint: dictionary of named attribute values with graph and keys}}
dfg.graph attributes {objects = {graph = "described"}} {
}

// -----

// expected-error @below {{attribute 'collections' failed to satisfy constraint: an AttrValue that MLIR has no form for, as serialized bytes}}
dfg.graph attributes {collections = "bytes"} {
}

// -----

// expected-error @below {{attribute 'more_collections' failed to satisfy constraint: dictionary of lists of names and numbers}}
dfg.graph attributes {more_collections = {distc_share = [1.0]}} {
}

// -----

// expected-error @below {{attribute 'dfg.batch_multiple' is not a number from 1 to 2^31 - 1}}
module attributes {dfg.batch_multiple = 0 : i64} {}
