// SPDX-License-Identifier: Apache-2.0
//
// The head of a frame of the switch's own. head_o is that of the inputs, and lacks the destination
// and IPv4's checksum: those are each outlet's own. sum_o, of IPv4's header as far as it is there,
// comes two cycles after the inputs.
module sw_head
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
(
  input  logic        clk_i,
  input  logic [47:0] own_mac_i,
  input  logic [31:0] own_ip_i,
  input  logic [15:0] own_udp_port_i,
  input  header_t     header_i,
  input  bytes_t      payload_bytes_i,
  output head_t       head_o,
  output logic [19:0] sum_o
);

  logic [18:0] low_q, high_q;

  assign head_o = head_to('0, own_mac_i, own_ip_i, own_udp_port_i, header_i, 16'(payload_bytes_i));

  always_ff @(posedge clk_i) begin
    low_q <= ipv4_sum(head_o, 0);
    high_q <= ipv4_sum(head_o, 5);
    sum_o <= 20'(low_q) + 20'(high_q);
  end

endmodule
