import HTTPServer

/// Bytes in hexadecimal and characters, sixteen per line.
struct HexDump {
  let bytes: [UInt8]
  let regions: [PageAnatomy.Region]

  let marked: Int?

  /// The lines of zeros that fold into one.
  private static let foldedLines = 3

  private enum Style: String {
    case none, marked
    case header = "h-header"
    case pointers = "h-pointers"
    case evenCell = "h-even"
    case oddCell = "h-odd"
    case freeblock = "h-free"
    case unallocated = "h-none"
  }

  private func style(_ part: PageAnatomy.Part) -> Style {
    switch part {
    case .databaseHeader, .pageHeader: .header
    case .pointers: .pointers
    case .cell(let index): index == marked ? .marked : index % 2 == 1 ? .oddCell : .evenCell
    case .freeblock: .freeblock
    case .unallocated, .reserved: .unallocated
    case .other: .none
    }
  }

  var html: HTML {
    var styles = [Style](repeating: .none, count: bytes.count)
    for region in regions {
      let style = style(region.part)
      for index in region.bytes.clamped(to: bytes.indices) { styles[index] = style }
    }
    var lines: [HTML] = []
    var start = 0
    var isAnchored = false
    while start < bytes.count {
      let end = min(start + 16, bytes.count)
      let folded = foldedEnd(from: start, styles)
      if folded >= start + 16 * Self.foldedLines {
        lines.append(
          """
          <span class="offset">\(Self.offset(start))</span>  <span class="h-none">\(folded - start) bytes of zeros</span>

          """)
        start = folded
        continue
      }
      let anchor: HTML = !isAnchored && styles[start..<end].contains(.marked) ? " id=\"marked\"" : .empty
      if styles[start..<end].contains(.marked) { isAnchored = true }
      let numbers = hexadecimal(start..<end, styles)
      let signs = characters(start..<end, styles)
      lines.append("<span class=\"offset\"\(anchor)>\(Self.offset(start))</span>  \(numbers)  \(signs)\n")
      start = end
    }
    return "<pre class=\"hex\" tabindex=\"0\" aria-label=\"Bytes\">\(lines)</pre>"
  }

  /// The end of a run of zero lines outside the marked cell.
  private func foldedEnd(from start: Int, _ styles: [Style]) -> Int {
    var end = start
    while end + 16 <= bytes.count, (end..<(end + 16)).allSatisfy({ bytes[$0] == 0 && styles[$0] != .marked }) {
      end += 16
    }
    return end
  }

  private static func offset(_ number: Int) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
  }

  private func hexadecimal(_ range: Range<Int>, _ styles: [Style]) -> HTML {
    pieces(range, styles) { run in
      run.map { index in
        let digits = String(bytes[index], radix: 16)
        let gap = index + 1 == run.upperBound ? "" : index % 16 == 7 ? "  " : " "
        return (digits.utf8.count == 1 ? "0" : "") + digits + gap
      }.joined()
    } between: { index in
      index % 16 == 8 ? "  " : " "
    } padding: { count in
      String(repeating: " ", count: count * 3 + (count >= 8 ? 1 : 0))
    }
  }

  private func characters(_ range: Range<Int>, _ styles: [Style]) -> HTML {
    pieces(range, styles) { run in
      String(String.UnicodeScalarView(run.map { (0x20...0x7E).contains(bytes[$0]) ? Unicode.Scalar(bytes[$0]) : "·" }))
    }
  }

  private func pieces(
    _ range: Range<Int>, _ styles: [Style], _ text: (Range<Int>) -> String, between: (Int) -> String = { _ in "" },
    padding: (Int) -> String = { _ in "" }
  ) -> HTML {
    var result = HTML.empty
    var start = range.lowerBound
    while start < range.upperBound {
      var end = start + 1
      while end < range.upperBound, styles[end] == styles[start] { end += 1 }
      if start > range.lowerBound { result += HTML(escaping: between(start)) }
      let content = HTML(escaping: text(start..<end))
      switch styles[start] {
      case .none: result += content
      case .marked: result += "<mark class=\"cell\">\(content)</mark>"
      case let style: result += "<span class=\"\(style.rawValue)\">\(content)</span>"
      }
      start = end
    }
    return result + HTML(escaping: padding(16 - range.count))
  }
}
