/// Follows the lists of types that schemas, containers and plans are given.
struct ListedTypes {
  /// A type of a list, and where it is named.
  struct Item {
    var type: TypeReference
    var scopes: [[String]]
    var file: String
  }

  let program: SourceProgram

  /// The types of a list; nil where only a compiler could follow it.
  func items(_ value: SourceExpression, scopes: [[String]], file: String, depth: Int = 0) -> [Item]? {
    guard depth < 16 else { return nil }
    switch value {
    case .metatype(let type): return [Item(type: type, scopes: scopes, file: file)]
    case .array(let elements):
      let all = elements.map { items($0, scopes: scopes, file: file, depth: depth + 1) }
      return all.contains { $0 == nil } ? nil : all.flatMap { $0 ?? [] }
    case .operators(let operands, let operators) where operators.allSatisfy({ $0 == "+" }):
      let all = operands.map { items($0, scopes: scopes, file: file, depth: depth + 1) }
      return all.contains { $0 == nil } ? nil : all.flatMap { $0 ?? [] }
    case .cast: return nil
    case .path(let names): return variable(names, scopes: scopes, file: file, depth: depth)
    case .string, .integer, .real, .boolean, .null, .dictionary, .implicitMember, .keyPath, .call, .member, .type,
      .operators, .other:
      return nil
    }
  }

  private func variable(_ names: [String], scopes: [[String]], file: String, depth: Int) -> [Item]? {
    guard let last = names.last else { return nil }
    var owner = Array(names.dropLast())
    if owner == ["Self"] || owner == ["self"] { owner = [] }
    if owner.isEmpty {
      for scope in scopes {
        guard case .found(let type) = program.find(scope, scopes: [], file: file) else { continue }
        if let property = program.staticProperty(last, of: type) {
          return items(of: property, in: type, depth)
        }
      }
      return program.list(last, file: file).flatMap { items($0, scopes: scopes, file: file, depth: depth + 1) }
    }
    guard let type = program.follow(program.find(owner, scopes: scopes, file: file)).declaration,
      let property = program.staticProperty(last, of: type)
    else { return nil }
    return items(of: property, in: type, depth)
  }

  private func items(of property: SourceProperty, in type: SourceDeclaration, _ depth: Int) -> [Item]? {
    (property.returned ?? property.initialValue).flatMap {
      items($0, scopes: type.scopes, file: property.place.file, depth: depth + 1)
    }
  }

  /// The declaration that an item names, aliases followed.
  func declaration(_ item: Item) -> SourceDeclaration? {
    item.type.names.flatMap { program.follow(program.find($0, scopes: item.scopes, file: item.file)).declaration }
  }
}
