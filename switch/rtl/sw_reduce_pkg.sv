// SPDX-License-Identifier: Apache-2.0
//
// What the modules of the reduction tree have in common.
package sw_reduce_pkg;

  // Bits of a lane: one element of 64 bits, or two of 32, the first of them in the low half.
  parameter int unsigned LaneBits = 64;
  // From a node's operands to its result.
  parameter int unsigned CombineCycles = 8;
  // The same of a node's quick way, for all but sums of floats.
  parameter int unsigned QuickCycles = 2;
  // What is left to a node's slow path before its last stage.
  parameter int unsigned FloatAddCycles = CombineCycles - 1;

  // The low bits of op_e and type_e of the protocol; whoever reads packets has checked the others.
  typedef struct packed {
    logic [2:0] op;
    logic [1:0] element;
  } operation_t;

  // The quick way is for all but sums of floats.
  function automatic logic is_quick(operation_t operation);
    return operation.op != 3'(sw_protocol_pkg::OpSum) ||
        !(operation.element inside {2'(sw_protocol_pkg::TypeFloat32),
                                    2'(sw_protocol_pkg::TypeFloat64)});
  endfunction

endpackage
