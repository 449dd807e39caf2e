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

  // Of a node that several take turns at: its operands are chosen before, and its result kept after.
  parameter int unsigned SharedNodeCycles = CombineCycles + 2;

  // Of nodes that share one (sw_reduce_shared), those of lower levels first: a level's first one.
  function automatic int unsigned shared_first(int unsigned ports, int unsigned level);
    return ports - (ports >> level);
  endfunction

  // The cycles from a beat on until node i of a level is given its operands: both are there a cycle
  // after the node below has made them, and its turn comes once in as many cycles as there are ports.
  function automatic int unsigned shared_begin(int unsigned ports, int unsigned level,
                                               int unsigned i);
    int unsigned at, turn;
    at = ((i + 1) << level) - 1;
    for (int unsigned below = 1; below <= level; ++below) begin
      turn = shared_first(ports, below) + ((i + 1) << (level - below)) - 1;
      at = at + SharedNodeCycles + 1;
      at = at + (turn + ports - at % ports) % ports;
    end
    return at;
  endfunction

  // From a beat to its result.
  function automatic int unsigned shared_cycles(int unsigned ports);
    return shared_begin(ports, $clog2(ports) - 1, 0) + SharedNodeCycles;
  endfunction

endpackage
