import Compatibility
import HTTPServer
import RecordBrowsing
import StoreFiles

/// The text of an export, batch by batch.
final class ExportWriter: Sendable {
  private enum Phase {
    case beginning
    case rows
    case finished
  }

  private let columns: [RecordColumn]
  private let format: RecordExport.Format

  /// Whether each record says in which state it is.
  private let hasStates: Bool
  private let phase = Mutex(Phase.beginning)

  init(_ columns: [RecordColumn], _ format: RecordExport.Format, hasStates: Bool) {
    self.columns = columns
    self.format = format
    self.hasStates = hasStates
  }

  /// The next piece; nil behind the last one.
  func next(_ rows: RowStream) throws -> [UInt8]? {
    let isFirst = phase.withLock { phase -> Bool? in
      switch phase {
      case .finished: return nil
      case .beginning:
        phase = .rows
        return true
      case .rows: return false
      }
    }
    guard let isFirst else { return nil }
    guard let batch = try rows.next() else {
      phase.withLock { $0 = .finished }
      let begin = isFirst ? beginning : ""
      let end = format == .json ? (isFirst ? "]\n" : "\n]\n") : ""
      return (begin + end).isEmpty ? nil : Array((begin + end).utf8)
    }
    var text = isFirst ? beginning : ""
    for (index, row) in batch.enumerated() {
      switch format {
      case .csv: text += CSVRow.line(fields(row))
      case .json: text += (isFirst && index == 0 ? "\n" : ",\n") + object(row).text
      case .jsonLines: text += object(row).text + "\n"
      }
    }
    return Array(text.utf8)
  }

  private var beginning: String {
    switch format {
    case .csv: CSVRow.line((hasStates ? ["state"] : []) + columns.map(\.name))
    case .json: "["
    case .jsonLines: ""
    }
  }

  private func fields(_ row: RecordPage.Row) -> [String] {
    (hasStates ? [row.state.rawValue] : []) + row.values.map(\.csv)
  }

  private func object(_ row: RecordPage.Row) -> JSON.Value {
    var members = zip(columns, row.values).map { JSON.Value.Member($0.name, $1.json) }
    if hasStates { members.insert(.init("_state", .string(row.state.rawValue)), at: 0) }
    return .object(members)
  }
}
