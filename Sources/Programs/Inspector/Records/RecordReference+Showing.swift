import HTTPServer
import RecordBrowsing

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
