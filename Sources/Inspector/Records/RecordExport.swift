import HTTPServer
import Platform

/// Streams all matching records as a download.
struct RecordExport {
  enum Format: String, Sendable, CaseIterable {
    /// RFC 4180, with a header line.
    case csv

    /// An array with an object per record.
    case json

    /// An object per line.
    case jsonLines = "jsonl"

    var title: String {
      switch self {
      case .csv: "CSV"
      case .json: "JSON"
      case .jsonLines: "JSON lines"
      }
    }

    var type: String {
      switch self {
      case .csv: "text/csv; charset=utf-8; header=present"
      case .json: "application/json; charset=utf-8"
      case .jsonLines: "application/x-ndjson; charset=utf-8"
      }
    }
  }

  static func response(
    _ place: RecordPlace, _ collection: RecordCollection, _ query: RecordQuery, as format: Format
  ) throws -> Response {
    response(
      try place.opened.store.stream(collection, query), of: place, named: collection.name, as: format,
      hasStates: collection.hasStates)
  }

  static func response(
    _ rows: RowStream, of place: RecordPlace, named subject: String, as format: Format, hasStates: Bool,
    ended: @escaping @Sendable () -> Void = {}
  ) -> Response {
    let writer = ExportWriter(rows.columns, format, hasStates: hasStates)
    let source = ChunkSource(
      onCancel: { rows.cancel() },
      ended: { _ in
        rows.cancel()
        ended()
      }, { () -> [UInt8]? in try writer.next(rows) })
    let name = "\(place.store.name)-\(place.side)-\(subject).\(format.rawValue)"
    return Response(headers: ["Content-Type": format.type], body: .chunks(source)).downloaded(as: name)
  }
}

final class ExportWriter: Sendable {
  private let columns: [RecordColumn]
  private let format: RecordExport.Format

  private let hasStates: Bool

  /// Whether nothing was written yet; nil after the end.
  private let isBeginning = Mutex<Bool?>(true)

  init(_ columns: [RecordColumn], _ format: RecordExport.Format, hasStates: Bool) {
    self.columns = columns
    self.format = format
    self.hasStates = hasStates
  }

  func next(_ rows: RowStream) throws -> [UInt8]? {
    let isFirst = isBeginning.withLock { isBeginning in
      defer { isBeginning = isBeginning.map { _ in false } }
      return isBeginning
    }
    guard let isFirst else { return nil }
    guard let batch = try rows.next() else {
      isBeginning.withLock { $0 = nil }
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
