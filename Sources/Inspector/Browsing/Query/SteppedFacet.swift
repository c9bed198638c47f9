/// A property counted in steps: dates by year or month, numbers by range.
package struct FacetSteps: Sendable, Hashable {
  /// The steps; raw values are suffixes of `_facet_` in a URL.
  package enum Step: String, Sendable, Hashable, CaseIterable {
    case year
    case month
    case range
  }

  package var column: String

  package var step: Step

  package init(_ column: String, _ step: Step) {
    self.column = column
    self.step = step
  }

  /// - Throws: `unknown-property`, and `bad-query` if the property can't be counted so.
  init(_ parameter: String, _ name: String, of collection: RecordCollection) throws(RecordBrowsingError) {
    guard let column = collection.column(name) else { throw .unknownColumn(name, in: collection) }
    guard let step = Step.allCases.first(where: { "_facet_\($0.rawValue)" == parameter }),
      Self.steps(of: column).contains(step)
    else {
      throw .badQuery(
        "\(parameter) does not fit the property's type", hint: "Years and months are for dates, ranges for numbers.")
    }
    self.init(column.name, step)
  }

  package static func steps(of column: RecordColumn) -> [Step] {
    column.isDate ? [.year, .month] : column.isNumeric ? [.range] : []
  }
}

/// The record counts per step of a property.
package struct SteppedFacet: Sendable, Hashable {
  package struct Count: Sendable, Hashable {
    /// A year such as `2026`, a month such as `2026-11`, or the lower bound.
    package var first: String?

    /// The exclusive upper bound; nil for dates or if unbounded.
    package var end: String?

    package var count: Int64

    package var isWhole = false

    var isYearOrMonth = false

    package func filters(_ steps: FacetSteps) -> [RecordFilter] {
      guard steps.step == .range else { return [RecordFilter(steps.column, .exact, first ?? "")] }
      return [
        first.map { RecordFilter(steps.column, .greaterOrEqual, $0) },
        end.map { RecordFilter(steps.column, .less, $0) },
      ]
      .compactMap(\.self)
    }
  }

  package var steps: FacetSteps

  /// The non-empty steps: dates latest first, numbers lowest first; nil on timeout.
  package var counts: [Count]?

  package var isCut: Bool
}
