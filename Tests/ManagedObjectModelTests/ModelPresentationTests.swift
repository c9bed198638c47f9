import Foundation
import ManagedObjectModel
import TestSupport
import Testing

@Suite struct ModelPresentationTests {
  let version: ModelVersion
  let bundle: ModelBundle

  init() throws {
    let model = try ManagedObjectModel(source: Array(garageSource.utf8))
    version = ModelVersion(name: "Garage 2", model: model, isCurrent: true)
    bundle = try #require(
      ModelBundle(
        name: "Garage",
        versions: [
          ModelVersion(name: "Garage", model: ManagedObjectModel(entities: [Entity(name: "A")]), isCurrent: false),
          version,
        ]))
  }

  @Test func showsAModel() {
    let text = ModelListing(bundle).text
    #expect(text == garageListing)
    #expect(text.split(separator: "\n").allSatisfy { $0.count <= 100 })
  }

  @Test func keepsToTheWidth() {
    #expect(ModelListing(bundle, width: 60).lines.filter { $0.count > 60 }.count <= 4)
  }

  @Test func showsNamesSafely() throws {
    let model = ManagedObjectModel(entities: [Entity(name: "A\u{1B}[31m\n", userInfo: ["k": "\u{7}"])])
    let text = ModelListing(ModelVersion(name: "\u{1B}", model: model, isCurrent: true)).text
    #expect(!text.contains("\u{1B}") && !text.contains("\u{7}"))
  }

  /// A payload as a program reads it.
  private func read(_ payload: some Encodable) throws -> [String: Any] {
    try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(payload)) as? [String: Any])
  }

  @Test func givesHashesAsJSON() throws {
    let object = try read(bundle.hashesPayload())
    let versions = try #require(object["versions"] as? [[String: Any]])
    #expect(versions.map { $0["name"] as? String } == ["Garage", "Garage 2"])
    #expect(versions.map { $0["current"] as? Bool } == [false, true])
    #expect(versions[1]["checksum"] as? String == version.checksum)
    #expect(versions[1]["incomplete"] == nil)
    let entities = try #require(versions[1]["entities"] as? [String: String])
    #expect(entities["Car"] == version.versionHashes["Car"]?.hex)
    #expect(entities.count == 5)
    let part = try #require(ModelBundle(name: "Garage", versions: [version.incomplete(["Car"])]))
    #expect(ModelListing(part).text.contains("cannot be told"))
    let open = try read(part.hashesPayload())
    let incomplete = try #require((open["versions"] as? [[String: Any]])?.last)
    #expect(incomplete["checksum"] as? String == "" && incomplete["incomplete"] as? [String] == ["Car"])
    #expect((incomplete["entities"] as? [String: String])?.count == 4)
  }

  @Test func givesAModelAsJSON() throws {
    let object = try read(bundle.payload())
    #expect(Set(object.keys) == ["name", "versions"])
    let last = try #require((object["versions"] as? [[String: Any]])?.last)
    #expect(
      Set(last.keys)
        == ["name", "current", "checksum", "identifiers", "entities", "configurations", "fetchRequests"])
    let car = try #require((last["entities"] as? [[String: Any]])?.first { $0["name"] as? String == "Car" })
    #expect(car["parent"] as? String == "Vehicle" && car["renamingIdentifier"] as? String == "Automobile")
    #expect(car["hash"] as? String == version.versionHashes["Car"]?.hex && car["abstract"] as? Bool == false)
    let attributes = try #require(car["attributes"] as? [[String: Any]])
    let price = try #require(attributes.first { $0["name"] as? String == "price" })
    #expect(price["default"] as? String == "-12.50" && price["transient"] == nil)
    let address = try #require(attributes.first { $0["name"] as? String == "address" })
    #expect((address["elements"] as? [[String: Any]])?.map { $0["name"] as? String } == ["city", "place"])
    let relationships = try #require(car["relationships"] as? [[String: Any]])
    #expect(relationships.map { $0["deleteRule"] as? String } == ["cascade"])
    #expect(
      Set(relationships[0].keys).isSuperset(
        of: ["name", "destination", "toMany", "optional", "minimumCount", "maximumCount"]))
    #expect((car["fetchedProperties"] as? [[String: Any]])?.map { $0["name"] as? String } == ["similar"])
    let indexes = try #require(car["indexes"] as? [[String: Any]])
    let elements = indexes.map { ($0["elements"] as? [[String: Any]])?.map { $0["property"] as? String } }
    #expect(elements == [["doors", "miles"]])
  }
}

private let garageListing = """
  Model Garage: 2 versions
    Garage                      1 entity     DHRWepD/BOBiIrm2M+eY1MkGa5D11wjKNDoG8ejWZE0=
    Garage 2                    5 entities   LYciAGUBVwwX4vwFmBYu+XuElvDHqaCFUkTCtgAdpEE=  current

  Version Garage 2 (current), identifier garage-1

  Person                                                                                  f73d0cfa3693
    name      String = "nobody"
    favorite  → Car (no inverse), no action
    friends   →→ Person? (friends), nullify
    vehicles  →→ Vehicle? (owner), deny

  Trip                                                                                    ab513624d8ea
    length  Double, encrypted in the cloud
    car     → Car (trips), nullify

  Vehicle (abstract, class VehicleObject)                                                 42323c086b2b
    built  Date? = 600000000 s since 2001
    key    UUID?
    plate  String, 3 to 12, matches [A-Z0-9 ]+, in Spotlight
    owner  → Person? (vehicles), nullify
    unique (plate)
    unique (key, built)
    index byPlateIndex (plate, built descending)
    index recent (doors + 1) where built > 5
    info team = cars & bikes

    Car (is a Vehicle, was Automobile, hash modifier m1)                                  56e82555444f
      address     Composite? Address
        .city     String?
        .place    Composite? Place
          .latitude  Double?
      doors       Integer 16 = 4, 1 to 7
      electric    Boolean = YES
      load        Float? = 2
      miles       Integer 64? = -1
      number      String?, kept in history, hash modifier n1
      page        URI? = https://example.com/?a=1&b=2
      paint       Transformable?, class Paint, transformer PaintTransformer
      photo       Binary?, may lie beside the store, was picture
      price       Decimal = -12.50
      scratch     Undefined?, transient
      searchName  String?, derived from canonical:(number)
      tripCount   Integer 64?, derived from count:(trips)
      weight      Double? = 0.5
      wheels      Integer 32?, indexed
      trips       →→ Trip? (car), ordered, 2 to 9, cascade
      similar     fetched: Car where doors == $FETCH_SOURCE.doors AND number CONTAINS[cd] "x"
      compound index (doors, miles)

      SportsCar (is a Car)                                                                2f6c4fc3f02a
        spoiler  Boolean?

  Configuration Cloud: Person, Trip

  Fetch request Expensive: Car where price > 100 OR (NOT electric == 1)

  """
