// SPDX-License-Identifier: Apache-2.0
//
// The head of a frame of the switch's own, to one address. head_o is that of the inputs but for IPv4's
// checksum, which is there three cycles after they are: before a frame's fourth word, which has it,
// is sent.
module sw_head
  import sw_protocol_pkg::*;
  import sw_switch_pkg::*;
(
  input  logic        clk_i,
  input  logic [47:0] own_mac_i,
  input  logic [31:0] own_ip_i,
  input  logic [15:0] own_udp_port_i,
  input  address_t    to_i,
  input  header_t     header_i,
  input  bytes_t      payload_bytes_i,
  output head_t       head_o
);

  head_t head;
  logic [18:0] low_q, high_q;
  logic [19:0] sum_q;
  logic [16:0] folded;
  logic [15:0] checksum_q;

  assign head = head_to(to_i, own_mac_i, own_ip_i, own_udp_port_i, header_i, 16'(payload_bytes_i));
  assign folded = 17'(sum_q[15:0]) + 17'(sum_q[19:16]);

  always_ff @(posedge clk_i) begin
    low_q <= ipv4_sum(head, 0);
    high_q <= ipv4_sum(head, 5);
    sum_q <= 20'(low_q) + 20'(high_q);
    checksum_q <= ~(folded[15:0] + 16'(folded[16]));
  end

  always_comb begin
    head_o = head;
    head_o.ip_checksum = checksum_q;
  end

endmodule
