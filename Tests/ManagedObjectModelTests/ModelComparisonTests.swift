import ManagedObjectModel
import TestSupport
import Testing

@Suite struct ModelComparisonTests {
  let model: ManagedObjectModel

  init() throws { model = try ManagedObjectModel(source: Array(garageSource.utf8)) }

  @Test func aModelEqualsItself() {
    let difference = ModelDifference(from: model, to: model)
    #expect(difference.isEmpty && difference.missingInSecond.isEmpty)
  }

  @Test func tellsWhatIsGoneNewAndChanged() throws {
    var other = model
    other.entities["Trip"] = nil
    other.entities["Bike"] = Entity(name: "Bike")
    other.entities["Person"]?.properties["name"] = .attribute(
      Attribute(traits: PropertyTraits(name: "name", isOptional: true), type: .date))
    other.entities["Person"]?.properties["favorite"] = nil
    other.entities["Person"]?.properties["age"] = .attribute(
      Attribute(traits: PropertyTraits(name: "age"), type: .integer16))
    other.entities["Vehicle"]?.isAbstract = false
    let difference = ModelDifference(from: model, to: other)
    #expect(difference.removedEntities == ["Trip"])
    #expect(difference.addedEntities == ["Bike"])
    // Heirs change with their ancestor.
    #expect(difference.changedEntities == ["Car", "Person", "SportsCar", "Vehicle"])
    #expect(difference.removedProperties.map(\.property) == ["favorite"])
    #expect(difference.addedProperties.map(\.property) == ["age"])
    #expect(difference.changedProperties.map(\.changes) == [["optional: no → yes", "type: String → Date"]])
    #expect(difference.entityChanges == ["Vehicle": ["abstract: yes → no"]])
    #expect(difference.missingInSecond == ["Trip", "Person.favorite"])
  }

  @Test func validates() throws {
    #expect(model.validate().isEmpty)
    var other = model
    other.configurations["Cloud"] = ["Nobody"]
    other.fetchRequests["Expensive"]?.entityName = "Nobody"
    other.entities["Car"]?.uniquenessConstraints = [["nothing"], ["address.city"]]
    other.entities["SportsCar"]?.properties["doors"] = .attribute(
      Attribute(traits: PropertyTraits(name: "doors"), type: .undefined))
    other.entities["Trip"]?.explicitRenamingIdentifier = "Person"
    guard case .relationship(var owner)? = other.entities["Vehicle"]?.properties["owner"] else { return }
    owner.inverseName = "friends"
    other.entities["Vehicle"]?.properties["owner"] = .relationship(owner)
    let kinds = other.validate().map(\.kind)
    for kind in [
      ModelFinding.Kind.missingEntity, .missingProperty, .overriddenProperty, .undefinedType,
      .ambiguousRenamingIdentifier, .mismatchedInverse,
    ] { #expect(kinds.contains(kind), "\(kind)") }
    #expect(other.validate().filter { $0.kind == .missingProperty }.map(\.propertyName) == ["nothing"])
    #expect(other.validate().filter(\.isStructural).isEmpty)
    owner.inverseName = "nothing"
    other.entities["Vehicle"]?.properties["owner"] = .relationship(owner)
    #expect(other.validate().filter(\.isStructural).map(\.kind) == [.missingInverse])
    #expect(throws: ModelError.self) { try other.modelCache() }
  }

  @Test(arguments: [
    ("count:(pages)", "count:(pages)"), ("pages.@count", "count:(pages)"), ("primary.code", "primary.code"),
    ("now()", "now()"), ("canonical:(name)", "canonical:(name)"), ("a+b*2", "a + (b * 2)"), ("-1.50", "-1.5"),
    ("\"it's \\\"so\\\"\"", "\"it's \\\"so\\\"\""), ("{1, 2, \"x\"}", "{1, 2, \"x\"}"), ("SELF.name", "name"),
    ("$FETCH_SOURCE.a.b", "$FETCH_SOURCE.a.b"),
  ])
  func printsExpressions(_ text: String, _ printed: String) throws {
    let model = try ManagedObjectModel(
      source: modelSource(
        """
        <entity name="A"><attribute name="a" attributeType="String" derived="YES" \
        derivationExpression="\(text.escaped)"/></entity>
        """))
    #expect(model.entity(named: "A")?.properties["a"]?.attribute?.derivationExpression == printed)
    // Through an archive and back it stays the same.
    let copy = try ManagedObjectModel(compiled: model.compiledBytes())
    #expect(copy.entity(named: "A")?.properties["a"]?.attribute?.derivationExpression == printed)
  }

  @Test(arguments: [
    ("a == 1", "a == 1"), ("a = 'x' && !(b < 2 or c >= 3)", "a == \"x\" AND (NOT (b < 2 OR c >= 3))"),
    ("ANY items.price > 5", "ANY items.price > 5"), ("name BEGINSWITH[cd] $N", "name BEGINSWITH[cd] $N"),
    ("a IN {1,2}", "a IN {1, 2}"), ("(a) == (b)", "a == b"), ("((a == 1))", "a == 1"),
    ("TRUEPREDICATE", "TRUEPREDICATE"),
    ("(a + 1) * 2 > 3", "(a + 1) * 2 > 3"), ("nonsense ??", "nonsense ??"), ("a == ", "a == "),
    ("SUBQUERY(a, $x, $x.b == 1).@count > 0", "SUBQUERY(a, $x, $x.b == 1).@count > 0"),
  ])
  func printsPredicates(_ text: String, _ printed: String) throws {
    let model = try ManagedObjectModel(
      source: modelSource(
        "<entity name=\"A\"/><fetchRequest name=\"r\" entity=\"A\" predicateString=\"\(text.escaped)\"/>"))
    #expect(model.fetchRequests["r"]?.predicateFormat == printed)
  }

  @Test func deeplyNestedPredicatesStayText() throws {
    let text = String(repeating: "(", count: 5000) + "a == 1" + String(repeating: ")", count: 5000)
    let time = try processorTime {
      let model = try ManagedObjectModel(
        source: modelSource("<entity name=\"A\"/><fetchRequest name=\"r\" entity=\"A\" predicateString=\"\(text)\"/>"))
      #expect(model.fetchRequests["r"]?.predicateFormat == text)
    }
    #expect(time < .seconds(1))
  }
}

extension String {
  fileprivate var escaped: String {
    var result = ""
    for character in self {
      switch character {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case "\"": result += "&quot;"
      default: result.append(character)
      }
    }
    return result
  }
}
