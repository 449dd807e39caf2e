// SPDX-License-Identifier: Apache-2.0
//
// What a switch has counted since its reset: amount_i of counter_i in each cycle in which counts_i is 1,
// what leads nowhere in lost_i, and frames without room of each port in overruns_i. A number is there two
// cycles later, or with FastClock three.
module sw_counters
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned StepBits = $clog2(Ports + 1)
) (
  input  logic                      clk_i,
  input  logic                      rst_ni,
  input  logic                      counts_i,
  input  counter_e                  counter_i,  // not CountOverrun
  input  logic [StepBits-1:0]       amount_i,
  input  logic                      lost_i,     // one more of CountUndeliverable
  input  logic [Ports-1:0]          overruns_i,
  output logic [Counters-1:0][63:0] counters_o
);

  logic [Counters-1:0][StepBits-1:0] steps_q;

  // Of what is counted once, by how much and which.
  logic lost;
  logic [StepBits-1:0] amount;
  counter_e counter;
  logic [$bits(counter_e)-1:0] counter_bits;
  sw_delay_flags #(
    .Width (1 + StepBits + $bits(counter_e)),
    .Cycles(FastClock)
  ) u_counted (
    .clk_i,
    .rst_ni,
    .flags_i({lost_i, counts_i ? amount_i : '0, counter_i}),
    .flags_o({lost, amount, counter_bits})
  );
  assign counter = counter_e'(counter_bits);

  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      steps_q <= '0;
      counters_o <= '0;
    end else begin
      for (int unsigned i = 0; i < Counters; ++i) begin
        steps_q[i] <= (32'(counter) == i ? amount : '0) +
            StepBits'(lost && 32'(CountUndeliverable) == i);
        counters_o[i] <= counters_o[i] + 64'(steps_q[i]);
      end
      steps_q[CountOverrun] <= StepBits'($countones(overruns_i));
    end
  end

  overruns_are_counted_apart :
  assert property (@(posedge clk_i) disable iff (!rst_ni) counts_i |-> counter_i != CountOverrun);

endmodule
