internal import StoreFiles
internal import SystemPackage

extension MappingTranslation {
  /// Notes an expression that cannot be carried out.
  mutating func refuse(
    _ obstacle: ExpressionObstacle, _ what: String, _ record: EntityRecord, _ property: PropertyPath?
  ) {
    let function = obstacle.function.map { " (\(printable(String($0.prefix(200)))))" } ?? ""
    refusals.append(
      MigrationRefusal(
        .unsupportedExpression, entity: record.destinationName ?? record.sourceName ?? "", property: property,
        reason: "The expression could not be evaluated",
        detail: """
          \(what) of mapping "\(printable(record.name))" cannot be carried out: \(obstacle.reason)\(function)
          """,
        wayRound: """
          Write the expression in a mapping file as SQL, or give the mapping a policy and register it under its class \
          name.
          """))
  }

  /// What a property's expression is called in an error.
  static func expression(of property: PropertyPath) -> String {
    "the value expression for \(printable(property.description))"
  }
}

extension MigrationError {
  /// The error of a mapping model that cannot be carried out as it is; the first reason speaks for all.
  init(mappingModel path: FilePath, refusals: [MigrationRefusal]) {
    let first = refusals.first { $0.kind == .unsupportedExpression } ?? refusals.first
    let more = refusals.count > 1 ? " (and \(refusals.count - 1) more)" : ""
    self.init(
      first?.kind == .unsupportedExpression ? .expressionUnsupported : .mappingInvalid,
      operation: MappingModelFile.operation, path: path, detail: (first?.detail ?? "it does not fit") + more,
      hint: first?.wayRound, entityName: first?.entityName, propertyName: first?.property?.description,
      reason: first?.reason)
    self.refusals = refusals
  }
}
