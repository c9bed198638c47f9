/// A property whose values are counted in steps: dates by year or month, numbers by ranges.
package struct FacetSteps: Sendable, Hashable {
  /// The steps; raw values are the suffixes of `_facet_` in an address.
  package enum Step: String, Sendable, Hashable, CaseIterable {
    case year
    case month
    case range
  }

  /// The name of the property.
  package var column: String

  /// In which steps its values are counted.
  package var step: Step

  /// A property and its steps.
  package init(_ column: String, _ step: Step) {
    self.column = column
    self.step = step
  }

  /// Reads a parameter of an address.
  ///
  /// - Throws: `unknown-property`, and `bad-query` where its values have no such steps.
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

  /// The steps in which the values of a property can be counted.
  package static func steps(of column: RecordColumn) -> [Step] {
    column.isDate ? [.year, .month] : column.isNumeric ? [.range] : []
  }
}

/// The number of records in each step of a property's values.
package struct SteppedFacet: Sendable, Hashable {
  /// One step, with the number of records in it.
  package struct Count: Sendable, Hashable {
    /// A year such as `2026`, a month such as `2026-11`, or the lowest number; nil where a range has no lower end.
    package var first: String?

    /// The number that a range ends before; nil for dates, and where it has no upper end.
    package var end: String?

    /// The number of records that fit the query and are in it.
    package var count: Int64

    /// Whether all its numbers are whole.
    package var isWhole = false

    /// Whether it is a step of dates; else a range of numbers.
    package var isYearOrMonth = false

    /// The conditions that the records in it meet.
    package func filters(_ steps: FacetSteps) -> [RecordFilter] {
      guard steps.step == .range else { return [RecordFilter(steps.column, .exact, first ?? "")] }
      return [
        first.map { RecordFilter(steps.column, .greaterOrEqual, $0) },
        end.map { RecordFilter(steps.column, .less, $0) },
      ]
      .compactMap(\.self)
    }
  }

  /// The property, and its steps.
  package var steps: FacetSteps

  /// The steps that have records: dates with the last first, numbers with the lowest first; nil where counting took too long.
  package var counts: [Count]?

  /// Whether there are more.
  package var isCut: Bool
}
