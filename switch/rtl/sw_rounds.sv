// SPDX-License-Identifier: Apache-2.0
//
// Those that get a frame, in rounds of ports that get it at once: of all children of a group the first one
// behind each port, then one more behind each port, and so on. With FastClock these are one after the
// other, as there is one address for all ports. Of a frame that goes on as it is (ToPorts), no port needs one.
//
// While free_i is 1, targets_i are to be told, but the first ones with first_i, one cycle, the last one of
// free_i: those are at the ports first_there_i. While valid_i is 1, what is left is gathered: gathered_o
// says that round_o is the next round, which is_last_o, if nobody is left. It is told with is_first_o,
// if each port gets it for its own first child, else at addresses_o, until take_i, one cycle, in which
// round_o is not empty. lost_o: a target's port is not there.
//
// to_i and source_i stay while valid_i is 1; of target_o, target_i is the child, without a clock.
module sw_rounds
  import sw_switch_pkg::*;
#(
  parameter  int unsigned Ports = 18,
  parameter  int unsigned Children = 16,
  parameter  int unsigned FastClock = 0,
  localparam int unsigned Targets = Children > Ports ? Children : Ports,
  localparam int unsigned Addresses = FastClock != 0 ? 1 : Ports
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,
  input  logic                       free_i,
  input  logic [Targets-1:0]         targets_i,
  input  logic                       first_i,
  input  logic [Ports-1:0]           first_there_i,
  input  logic                       valid_i,
  input  to_e                        to_i,
  input  address_t                   source_i,
  output logic [15:0]                target_o,
  input  address_t                   target_i,
  input  address_t                   target_parent_i,
  output logic                       gathered_o,
  output logic                       is_last_o,
  output logic [Ports-1:0]           round_o,
  output logic                       is_first_o,
  output address_t [Addresses-1:0]   addresses_o,
  input  logic                       take_i,
  output logic                       lost_o
);

  localparam int unsigned TargetBits = $clog2(Targets);

  logic [Targets-1:0] targets_q;
  logic [TargetBits-1:0] target, lowest;
  logic looks, looking;  // one is looked for; from there to its place in a round
  address_t address, found_address, address_q;
  logic found_valid, address_valid_q;
  logic [Ports-1:0] address_port_q;  // its port; none, if it is not there
  logic is_alone_q;  // it has a round of its own
  logic [Ports-1:0] round_q, round_d;
  logic is_first_q, chooses, leads_nowhere, waits_for_round;

  assign lowest = TargetBits'(lowest_of(MaxPorts'(targets_q)));
  assign target_o = 16'(target);
  always_comb begin
    unique case (to_i)
      ToSource:   address = source_i;
      ToParent:   address = target_parent_i;
      ToChildren: address = target_i;
      default: begin  // no more than a port
        address = source_i;
        address.port = 8'(target);
      end
    endcase
  end

  if (FastClock != 0) begin : g_slowly
    // One after the other: which it is; its address; and its port.
    logic target_valid_q, found_q, looking_q;
    logic [TargetBits-1:0] target_q;
    address_t found_address_q;
    always_ff @(posedge clk_i or negedge rst_ni) begin
      if (!rst_ni) begin
        {target_valid_q, found_q, looking_q} <= '0;
      end else begin
        target_valid_q <= looks;
        found_q <= target_valid_q;
        looking_q <= looks || (looking_q && !(address_valid_q && !waits_for_round));
      end
    end
    always_ff @(posedge clk_i) begin
      target_q <= lowest;
      found_address_q <= address;
    end
    assign target = target_q;
    assign looking = looking_q;
    assign looks = valid_i && targets_q != '0 && !looking_q;
    assign {found_valid, found_address} = {found_q, found_address_q};
  end else begin : g_at_once
    assign target = lowest;
    assign looking = address_valid_q;
    assign looks = valid_i && targets_q != '0 && !waits_for_round;
    assign {found_valid, found_address} = {looks, address};
  end

  assign leads_nowhere = address_port_q == '0;
  assign waits_for_round = address_valid_q && round_q != '0 &&
      (FastClock != 0 ? is_alone_q : (round_q & address_port_q) != '0);
  assign chooses = address_valid_q && !leads_nowhere && !waits_for_round;
  assign lost_o = address_valid_q && leads_nowhere;
  assign is_last_o = targets_q == '0 && !looking;
  assign gathered_o = waits_for_round || is_last_o;
  assign round_o = round_q;
  assign is_first_o = is_first_q;

  always_comb begin
    if (first_i) begin
      round_d = first_there_i;
    end else begin
      round_d = take_i ? '0 : round_q | (chooses ? address_port_q : '0);
    end
  end
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      address_valid_q <= 1'b0;
      round_q <= '0;
    end else begin
      address_valid_q <= found_valid || waits_for_round;
      round_q <= round_d;
    end
  end
  always_ff @(posedge clk_i) begin
    if (free_i) begin
      targets_q <= targets_i;
    end else if (looks) begin
      targets_q[lowest] <= 1'b0;
    end
    if (first_i || chooses) is_first_q <= first_i;
    if (!waits_for_round) begin
      address_q <= found_address;
      for (int unsigned i = 0; i < Ports; ++i) address_port_q[i] <= found_address.port == 8'(i);
      is_alone_q <= found_address.port < 8'(Ports) && to_i != ToPorts;
    end
  end

  if (FastClock != 0) begin : g_address
    // That which was there when the round began.
    sw_record #(
      .Width($bits(address_t))
    ) u_address (
      .clk_i,
      .takes_next_i(round_d == '0),
      .value_i     (address_q),
      .value_o     (addresses_o[0])
    );
  end else begin : g_addresses
    logic unused_alone;
    assign unused_alone = is_alone_q;
    always_ff @(posedge clk_i) begin
      for (int unsigned i = 0; i < Addresses; ++i) begin
        if (chooses && address_port_q[i]) addresses_o[i] <= address_q;
      end
    end
  end

  takes_a_round :
  assert property (@(posedge clk_i) disable iff (!rst_ni) take_i |->
      valid_i && gathered_o && round_o != '0);

endmodule
