import HTTPServer
import ManagedObjectModel
import Platform
import SQLiteFormat
import Salvage

/// A record on two sides, property by property.
struct RecordComparisonPage: InspectorPage {
  let sides: ComparedSides
  let name: String
  let key: String
  let first: RecordDetail?
  let second: RecordDetail?

  init(_ sides: ComparedSides, _ name: String, _ key: String) throws {
    self.sides = sides
    self.name = name
    self.key = key
    first = try Self.detail(sides.first, name, key)
    second = try Self.detail(sides.second, name, key)
    guard first != nil || second != nil else { throw Refusal(.notFound, "neither of the stores has such a record") }
  }

  private static func detail(_ place: RecordPlace, _ name: String, _ key: String) throws -> RecordDetail? {
    let store = place.opened.store
    guard let collection = store.collections.first(where: { $0.name == name }) else { return nil }
    do throws(RecordBrowsingError) {
      return try store.detail(of: RecordKey(key, of: collection), in: collection)
    } catch {
      guard error.kind == .unknownRecord else { throw error }
      return nil
    }
  }

  var title: String { first?.label ?? second?.label ?? "\(name) \(key)" }
  var crumbs: [Crumb] {
    sides.crumbs + [Crumb(sides.words, sides.target), Crumb(name, sides.records(name))]
  }

  /// The properties of both, those of the first store first.
  private var lines: [(name: String, first: PresentedValue?, second: PresentedValue?)] {
    func values(_ detail: RecordDetail?) -> [(String, PresentedValue)] {
      detail.map { Array(zip($0.columns.map(\.name), $0.row.values)) } ?? []
    }
    let (one, other) = (values(first), values(second))
    var result = one.map { name, value in (name, value as PresentedValue?, other.first { $0.0 == name }?.1) }
    result += other.filter { line in !one.contains { $0.0 == line.0 } }.map { ($0.0, nil, $0.1) }
    return result
  }

  func encode(to encoder: any Encoder) throws {
    try sides.encode(to: encoder)
    try encoder.encode([
      "entity": name, "key": key, "inFirst": first != nil, "inSecond": second != nil,
      "properties": lines.map { line -> JSON.Value in
        [
          "name": .string(line.name), "first": line.first?.json ?? .null, "second": line.second?.json ?? .null,
          "isSame": .boolean(line.first == line.second),
        ]
      },
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let rows = lines.map { line -> HTML in
      let isSame = line.first == line.second
      func cell(_ value: PresentedValue?, _ mark: HTML, _ end: HTML) -> HTML {
        guard let value else { return "<td class=\"soft\">–</td>" }
        return isSame ? "<td>\(value.html)</td>" : "<td>\(mark)\(value.html)\(end)</td>"
      }
      return """
        <tr><th scope="row">\(line.name)</th>\(cell(line.first, "<del>", "</del>"))\
        \(cell(line.second, "<ins>", "</ins>"))</tr>
        """
    }
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">\(name) \(key) · \(sides.words)</p></div></div>
      <div class="scroll" tabindex="0" role="region" aria-label="\(title)"><table><thead><tr><th scope="col">Property</th>\
      \(head(sides.first, first))\(head(sides.second, second))</tr></thead><tbody>\(rows)</tbody></table></div>
      """
  }

  private func head(_ place: RecordPlace, _ detail: RecordDetail?) -> HTML {
    guard let detail else { return "<th scope=\"col\">\(place.side.title)<small>not there</small></th>" }
    return """
      <th scope="col"><a href="\(place.record(detail.row.key, in: name))">\(place.side.title)</a></th>
      """
  }
}

/// One record with everything it holds and everything that leads to it.
package struct RecordDetail: Sendable {
  /// A to-many relationship of the record.
  package struct Related: Sendable, Hashable {
    /// The name of the relationship; `Entity.name` of one that leads here without a way back.
    package var name: String

    /// Whether it leads here from elsewhere.
    package var isIncoming: Bool

    /// The collection of the destinations.
    package var collection: String

    /// How many there are; nil where counting took too long.
    package var count: Int64?

    /// The to-one property of the destinations that leads back here; nil where there is none.
    package var inverse: String?

    /// The first of them, in the order of the relationship.
    package var first: [Reference]
  }

  /// Another record, by what people know it by.
  package struct Reference: Sendable, Hashable {
    /// Its collection: its own entity where that is known.
    package var collection: String

    /// Its key.
    package var key: RecordKey

    /// Its name or title; nil where it has none.
    package var label: String?

    /// Whether the record is there.
    package var exists: Bool
  }

  /// The record; its values are those of ``columns``, with longer texts than on a page.
  package var row: RecordPage.Row

  /// The columns.
  package var columns: [RecordColumn]

  /// The name or title of the record; nil where it has none.
  package var label: String?

  /// What its to-one relationships lead to, by name.
  package var toOne: [String: Reference]

  /// Its to-many relationships.
  package var toMany: [Related]
}

extension RecordDetail.Reference: Encodable {
  /// Writes what programs are told of it.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "entity": collection, "key": key.description, "label": JSON.orNull(label), "exists": exists,
    ])
  }
}

extension RecordDetail.Reference {
  /// A link to the record, by what people know it by.
  func html(at place: RecordPlace) -> HTML {
    let name = label ?? "\(collection) \(key.description)"
    guard exists else {
      return """
        <span class="odd">\(collection) \(key.description)</span> <span class="tag bad">not there</span>
        """
    }
    return "<a href=\"\(place.record(key, in: collection))\">\(name)</a> <span class=\"soft\">\(collection)</span>"
  }
}
