import HTTPServer
import RecordBrowsing
import StoreCoordination

/// All records that fit a query as a download, made while it is sent.
struct RecordExport {
  /// The form of an export.
  enum Format: String, Sendable, CaseIterable {
    /// Comma-separated values (RFC 4180): a line of names, then a line for each record.
    case csv

    /// An array with an object for each record.
    case json

    /// An object on each line.
    case jsonLines = "jsonl"

    /// What a button calls it.
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

  /// The answer that streams the records.
  static func response(
    _ place: RecordPlace, _ collection: RecordCollection, _ query: RecordQuery, as format: Format
  ) throws -> Response {
    let rows = try place.opened.store.stream(collection, query)
    let writer = ExportWriter(rows.columns, format, hasStates: collection.hasStates)
    let source = ChunkSource(
      onCancel: { rows.cancel() }, ended: { _ in rows.cancel() },
      { () -> [UInt8]? in try writer.next(rows) })
    let name = "\(place.store.name)-\(place.side)-\(collection.name).\(format.rawValue)"
    return Response(headers: ["Content-Type": format.type], body: .chunks(source)).downloaded(as: name)
  }
}
