package discovery

import "strings"

// synonyms are words of which one is asked for where a tool has another: the verbs that tools are named after, and things
// that many tools are about. The list is short on purpose. What is particular to a catalogue belongs into aliases and
// keywords of its tools, and use teaches the rest.
var synonyms = synonymGroups(`
	picture image photo
	delete remove erase
	create make generate build
	buy purchase
	movie film
	price cost quote
	find search lookup
	fetch retrieve obtain
	update edit modify change
	email mail
	car vehicle automobile
	begin start launch
	stop end cancel
	show display
	book reserve schedule
	convert transform
	calculate compute
	document file
	weather forecast temperature
	song music track
	doctor physician
	hotel accommodation lodging
	recipe cook dish
	job career vacancy
	stock share equity
	summary summarize digest
	location place address
	website site webpage
	insert add append
	check verify validate
	game play
	teach learn course
	meeting appointment event
	remind reminder alarm
	chart graph plot diagram
	currency money
	news headline article
	store shop
	trip travel journey
	flight plane airline
	statistic metric
	speech voice audio
	medicine drug medication
	图片 图像 照片
	天气 气温 气象
	价格 费用 报价
	电影 影片
	酒店 宾馆 旅馆
	查询 搜索 查找
	删除 移除
	创建 新建 生成
	修改 更新 编辑
	购买 买入
	邮件 邮箱
	歌曲 音乐
	预订 预定 预约
	计算 估算
	新闻 资讯
	地址 位置 地点
`)

// synonymGroups gives each word, stemmed, the tokens of the others of its lines.
func synonymGroups(lines string) map[uint64][]token {
	groups := map[uint64][]token{}
	for line := range strings.Lines(lines) {
		var group []token
		for word := range strings.FieldsSeq(line) {
			tokens := tokenize(word, maxFieldTokens)
			for _, t := range tokens {
				if !t.unigram {
					group = append(group, t)
				}
			}
		}
		for _, one := range group {
			for _, other := range group {
				if other.key != one.key {
					groups[one.key] = append(groups[one.key], other)
				}
			}
		}
	}
	return groups
}
